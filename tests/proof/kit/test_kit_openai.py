"""The bundled provider of OpenAI's images API passes the kit."""

import gateway_openai
from gateway.testing import FakeApi, ProviderContract, Reply

_USAGE = {
    "input_tokens": 14,
    "input_tokens_details": {"image_tokens": 0, "text_tokens": 14},
    "output_tokens": 439,
    "output_tokens_details": {"image_tokens": 439, "text_tokens": 0},
    "total_tokens": 453,
}


class OpenAIApi(FakeApi):
    """`POST /images/generations` as OpenAI documents it; GET /models for health."""

    submit = "POST /v1/images/generations"
    others = "GET /v1/models"

    def settings(self, url):
        return {"openai_api_key": "sk-never-to-be-seen", "openai_base_url": f"{url}/v1"}

    def made(self, ask):
        return Reply({"created": 1, "data": [{"b64_json": ask.made.base64}], "usage": _USAGE})

    def moderated(self, ask):
        return Reply(
            {"error": {"code": "moderation_blocked", "type": "image_generation_user_error"}}, 400
        )

    def nothing(self, ask):
        return Reply({"created": 1, "data": []})

    def account(self, ask):
        return Reply({"error": {"code": "invalid_api_key"}}, 401)

    def other(self, ask):
        return Reply({"object": "list", "data": []})


class TestOpenAI(ProviderContract):
    plugin = gateway_openai
    api = OpenAIApi


class OpenAIEditsApi(OpenAIApi):
    """`POST /images/edits`, with the same response."""

    submit = "POST /v1/images/edits"

    def settings(self, url):
        return super().settings(url) | {"openai_edit_model": "gpt-image-2"}


class TestOpenAIEdits(ProviderContract):
    plugin = gateway_openai
    api = OpenAIEditsApi
    slug = "openai-image-edit"
