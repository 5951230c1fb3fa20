"""Shared by the document parsers' tests: a document, and its sale by a gateway."""

import base64

import attrs
from documents_pdf import Page, write

from gateway import Attachment, GenerationRequest
from gateway.plugins.installed import BUNDLED

PDF = b"%PDF-1.4 three pages, honestly"


def document(name="report.pdf", data=PDF, pages=3):
    return GenerationRequest(attachment=Attachment(name=name, data=data), pages=pages)


def count(vendor, method, path):
    return sum(1 for one in vendor.asked(method) if one.path == path)


def pdf_of(pages):
    return write([Page() for _ in range(pages)])


def selling(settings, plugin, **values):
    """Return the gateway's settings with a plugin's, and the plugin if it is not bundled."""
    more = [] if plugin.__name__ in BUNDLED else [plugin]
    return attrs.evolve(settings, plugin_values=values), {"more": more}


async def buy_parsing(gateway, header, slug, data, name="report.pdf", **more):
    """Ask for a document to be parsed, optionally with a payment header."""
    body = {"fileBase64": base64.b64encode(data).decode(), "fileName": name, **more}
    headers = {"X-PAYMENT": header} if header else {}
    return await gateway.client.post(f"/api/x402/{slug}", json=body, headers=headers)
