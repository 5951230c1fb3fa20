"""The bundled provider of Mistral's OCR passes the kit."""

import json

import pytest

import gateway_mistral
from gateway.testing import FakeApi, ProviderContract, Reply

pytestmark = pytest.mark.full

_SIZE = {"dpi": 200, "height": 2200, "width": 1700}


class MistralApi(FakeApi):
    """`POST /ocr` returns pages of Markdown."""

    submit = "POST /v1/ocr"
    others = "GET /v1/models"
    lacks = ("moderated",)

    def settings(self, url):
        return {"mistral_api_key": "mistral-secret", "mistral_base_url": f"{url}/v1"}

    def made(self, ask):
        return self._pages(ask.made.markdown)

    def nothing(self, ask):
        return self._pages()

    def _pages(self, *texts, **more):
        pages = [
            {"index": index, "markdown": text, "images": [], "dimensions": _SIZE}
            for index, text in enumerate(texts)
        ]
        usage = {"pages_processed": len(pages)}
        return Reply({"pages": pages, "model": "mistral-ocr-4-0", "usage_info": usage, **more})

    def other(self, ask):
        return Reply({"object": "list", "data": []})


class MistralExtractApi(MistralApi):
    """The same request with a schema returns JSON as text beside the pages."""

    def made(self, ask):
        return self._pages("# A", document_annotation=json.dumps(ask.made.extracted))

    def nothing(self, ask):
        return self._pages("# A", document_annotation=None)


class TestMistral(ProviderContract):
    plugin = gateway_mistral
    api = MistralApi


class TestMistralExtract(ProviderContract):
    plugin = gateway_mistral
    slug = gateway_mistral.EXTRACTOR.slug
    api = MistralExtractApi
