"""The bundled provider of Mistral's OCR passes the kit."""

import json

import gateway_mistral
from gateway.testing import FakeApi, ProviderContract, Reply


class MistralApi(FakeApi):
    """`POST /ocr` answers with pages of Markdown."""

    submit = "POST /v1/ocr"
    others = "GET /v1/models"
    lacks = ("moderated",)

    def settings(self, url):
        return {"mistral_api_key": "mistral-secret", "mistral_base_url": f"{url}/v1"}

    def made(self, ask):
        pages = [{"index": 0, "markdown": ask.made.markdown, "images": []}]
        return Reply({"pages": pages, "usage_info": {"pages_processed": 1}})

    def nothing(self, ask):
        return Reply({"pages": [], "usage_info": {"pages_processed": 0}})

    def other(self, ask):
        return Reply({"object": "list", "data": []})


class MistralExtractApi(MistralApi):
    """The same request with a schema is answered with JSON as a text beside the pages."""

    def made(self, ask):
        return self._answer(json.dumps(ask.made.extracted))

    def nothing(self, ask):
        return self._answer(None)

    def _answer(self, annotation):
        pages = [{"index": 0, "markdown": "# A", "images": []}]
        usage = {"pages_processed": 1}
        return Reply({"pages": pages, "document_annotation": annotation, "usage_info": usage})


class TestMistral(ProviderContract):
    plugin = gateway_mistral
    api = MistralApi


class TestMistralExtract(ProviderContract):
    plugin = gateway_mistral
    slug = gateway_mistral.EXTRACTOR.slug
    api = MistralExtractApi
