"""Every door's output about offers of the four built-in capabilities, as text for snapshots."""

import base64
import hashlib
import json
import re

import attrs

from gateway import Capability, Choice, Output, PriceStep, Prompt, hookimpl, usdc
from gateway.domain.description import request_example, request_schema
from gateway.domain.listing import bazaar_of
from gateway.outputs.keys import MediaTypes
from gateway_check.live import cheapest_request
from gateway_demo.sample import sample_pdf
from gateway_mcp.tools import input_schema
from gateway_shop.orders import order
from gateway_testing.facts import ENDPOINT
from gateway_testing.provider.samples import PICTURE, sample_for
from tests.authorizations import decoded
from tests.conftest import PNG, ScriptedProvider
from tests.gateway.web.descriptions import BASE

_HASH = "0x" + "ab" * 32
_PARSED = {"required_fields": ("fileBase64", "fileName")}
_WITH_FILE = {"required_fields": ("prompt", "fileBase64", "fileName")}
_FORMATS = Choice(values=("png", "jpg", "webp"), default="png")
_STEP = PriceStep(price_units=usdc("0.05"), resolution="2K")
_OFFERS = (
    {
        "slug": "draw",
        "aspect_ratio": Choice(values=("1:1", "16:9"), default="1:1"),
        "output_format": _FORMATS,
        "resolution": Choice(values=("1K", "2K"), default="1K"),
        "price_steps": (_STEP,),
        "max_prompt_chars": 1500,
    },
    {
        "slug": "edit",
        "capability": "image-editing",
        "output_format": _FORMATS,
        "resolution": Choice(values=("1K",)),
        "file_extensions": (".png", ".jpg", ".webp"),
        **_WITH_FILE,
    },
    {
        "slug": "parse",
        "capability": "document-parsing",
        "output_format": Choice(values=("markdown", "json"), default="markdown"),
        "file_extensions": (".pdf", ".docx", ".txt"),
        "price_per_page": usdc("0.03"),
        "max_pages": 12,
        **_PARSED,
    },
    {
        "slug": "steps",
        "capability": "document-parsing",
        "file_extensions": (".pdf",),
        "price_steps": (PriceStep(price_units=usdc("0.05"), min_pages=51),),
        "max_pages": 1200,
        **_PARSED,
    },
    {
        "slug": "extract",
        "capability": "document-extraction",
        "file_extensions": (".pdf", ".png"),
        "max_pages": 20,
        **_WITH_FILE,
    },
    {"slug": "speech", "capability": "text-to-music"},
    {
        "slug": "sums",
        "capability": "document-summary",
        "file_extensions": (".txt",),
        **_WITH_FILE,
    },
)
OFFERS = {
    one["slug"]: attrs.evolve(ENDPOINT, title=f"Offer {one['slug']}", **one) for one in _OFFERS
}
# The checks are those of the other flow, so few offers are tried by it too.
_BY_TRANSFER = ("draw", "extract")
_SCHEMA = '{"type":"object","properties":{"total":{"type":"number"}}}'
_BODIES = (
    {},
    {"prompt": "a boat"},
    {"prompt": ""},
    {"prompt": "x" * 10_001},
    {"prompt": "x" * 2_000},
    {"prompt": 5},
    {"prompt": _SCHEMA},
    {"prompt": '{"type":"array"}'},
    *({"output_format": one} for one in ("webp", "json", "markdown", "gif", "", "mp3")),
    *({"aspect_ratio": one} for one in ("16:9", "9:16", "2:1")),
    *({"resolution": one} for one in ("2K", "9K")),
    {"callbackUrl": "ftp://there"},
)
_FILES = {
    "a.txt": b"hello",
    "a.pdf": b"hello",
    "a.docx": b"PK\x03\x04",
    "a.png": PICTURE,
    "small.png": PNG,
    "false.jpg": PICTURE,
    "false.pdf": PICTURE,
    "a.exe": b"MZ",
    "": b"hello",
    "empty.txt": b"",
}
_TYPES = (
    *("image/png", "image/jpeg", "image/webp", "text/markdown", "text/plain", "application/json"),
    *("application/pdf", "audio/mpeg", "image/svg+xml", "text/html"),
)
# Names of built files, which change with their content.
_BUILT = re.compile(r"(/web/[a-z-]+)[.-][0-9A-Za-z_-]{6,}(\.(?:css|js|webp|svg))")
_CHANGING = re.compile(r'"(lastUpdated|updated|created|taskId|version)":\s*("[^"]*"|\d+)')
PATHS = {
    "manifest.json": "/.well-known/agent-manifest.json",
    "x402.json": "/.well-known/x402.json",
    "llms.txt": "/llms.txt",
    "openapi.json": "/openapi.json",
    "home.html": "/",
    **{f"play-{slug}.html": f"/play/{slug}" for slug in OFFERS},
}


class Recorded:
    """Sells an offer of each kind; `more` copies of the first fill the front page."""

    __name__ = "recorded-plugin"

    def __init__(self, more: int = 0) -> None:
        self.more = more

    @hookimpl
    def register_capabilities(self, register) -> None:
        for name in ("text-to-music", "document-summary"):
            register(Capability(name=name, prompt=Prompt(use="optional"), is_strict=False))

    @hookimpl
    def register_endpoints(self, register) -> None:
        provider = ScriptedProvider()
        for offer in OFFERS.values():
            register(offer, provider)
        for number in range(self.more):
            register(attrs.evolve(OFFERS["draw"], slug=f"draw-{number}"), provider)


def dump(value) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n"


def describe(endpoint) -> dict:
    """Return the answers of the doors that need no gateway."""
    found = {
        "schema": request_schema(endpoint, callbacks=True),
        "example": request_example(endpoint),
        "bazaar": bazaar_of(endpoint),
        "mcp": input_schema(endpoint),
    }
    for name, make in (("live", cheapest_request), ("order", lambda one: order(one, 0))):
        try:
            found[name] = _show(make(endpoint))
        except Exception as error:  # noqa: BLE001 - any difference shows
            found[name] = str(error)
    try:
        found["kit"] = [str(part)[:200] for part in sample_for(endpoint)]
    except BaseException as error:  # noqa: BLE001 - pytest's own
        found["kit"] = str(error)
    return found


def _show(request) -> dict:
    shown = {name: getattr(request, name) for name in attrs.fields_dict(type(request))}
    if not shown["measured"]:
        del shown["measured"]
    if request.attachment is not None:
        shown["attachment"] = [request.attachment.name, request.attachment.sha256]
    return shown


def digests(endpoints) -> str:
    """Return a line for each endpoint, with a hash of each door's output."""
    lines = []
    for endpoint in sorted(endpoints, key=lambda one: one.slug):
        shown = describe(endpoint)
        hashed = [
            f"{k}={hashlib.sha256(dump(v).encode()).hexdigest()[:12]}" for k, v in shown.items()
        ]
        lines.append(" ".join([endpoint.slug, *hashed]))
    return "\n".join([*lines, ""])


async def pages(gateway) -> dict[str, str]:
    """Return each document and page by the name of its snapshot."""
    found = {}
    for name, path in PATHS.items():
        text = (await (await gateway.client.get(path)).get_data()).decode()
        text = _CHANGING.sub(r'"\1":"…"', _BUILT.sub(r"\1\2", text))
        if name.endswith(".json"):
            text = dump(json.loads(text))
        found[name] = text
    return found


async def answers(gateway) -> str:
    """Return the answer to each body at each offer, in both flows, without a payment."""
    files = [
        {"fileBase64": base64.b64encode(data).decode(), "fileName": name}
        for name, data in _FILES.items()
    ]
    report = {"fileBase64": base64.b64encode(sample_pdf()).decode(), "fileName": "a.pdf"}
    whole = [*_BODIES, *files, report, *({"prompt": "a boat"} | file for file in (*files, report))]
    whole += [one | file for one in _BODIES[6:] for file in (files[0], report, files[3])]
    lines = []
    for slug in OFFERS:
        for body in whole:
            direct = {"slug": slug, "txHash": _HASH, "prompt": "a boat"} | body
            ways = [(f"/api/x402/{slug}", body)]
            if slug in _BY_TRANSFER:
                ways.append(("/api/proxy-generate", direct))
            for url, sent in ways:
                answer = await gateway.client.post(url, json=sent)
                shown = _answer_of(await answer.get_json(), answer.status_code)
                given = {k: str(v)[:20] for k, v in body.items()}
                lines.append(f"{url.rpartition('/')[2]} {slug} {json.dumps(given)} {shown}")
    return "\n".join([*lines, ""])


def _answer_of(body: dict, status: int) -> str:
    amounts = [one.get("amount") for one in body.get("accepts", ())]
    return " ".join(str(one) for one in (status, body.get("code"), body.get("error"), *amounts))


async def challenges(gateway) -> str:
    """Return the 402 of each offer by both versions, with its decoded header."""
    found = {}
    for slug in OFFERS:
        for version in (1, 2):
            answer = await gateway.client.get(f"/api/x402/{slug}?x402Version={version}")
            header = decoded(answer.headers["PAYMENT-REQUIRED"])
            found[f"{slug} {version}"] = {"body": await answer.get_json(), "header": header}
    return dump(found).replace(BASE, "")


def files() -> str:
    """Return name and headers of an output of each type."""
    found, types = {}, MediaTypes()
    for media_type in _TYPES:
        key = types.key_of("task-0123456789abcdef", 0, Output(data=b"", media_type=media_type))
        found[media_type] = [key, types.headers_of(key)]
    return dump(found)
