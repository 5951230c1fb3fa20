"""The bundled provider of OpenRouter's images API passes the kit."""

import gateway_openrouter
from gateway.testing import FakeApi, ProviderContract, Reply
from tests.proof.kit.edits_contract import EditsContract


class OpenRouterApi(FakeApi):
    """`POST /images` as openrouter 1.3.84 types it; GET /key for health."""

    submit = "POST /api/v1/images"
    others = "GET /api/v1/key"

    def settings(self, url):
        return {
            "openrouter_api_key": "sk-or-v1-never-to-be-seen",
            "openrouter_base_url": f"{url}/api/v1",
        }

    def made(self, ask):
        picture = {"b64_json": ask.made.base64, "media_type": "image/png"}
        return Reply({"created": 1, "data": [picture], "usage": {"cost": 0.048}})

    def moderated(self, ask):
        metadata = {"reasons": ["violence"], "flagged_input": "a boat", "provider_name": "OpenAI"}
        error = {"code": 403, "message": "Your input was flagged", "metadata": metadata}
        return Reply({"error": error}, 403)

    def nothing(self, ask):
        return Reply({"created": 1, "data": []})

    def account(self, ask):
        return Reply({"error": {"code": 402, "message": "Insufficient credits"}}, 402)

    def other(self, ask):
        return Reply({"data": {"label": "sk-or-v1-…", "limit": None, "limit_remaining": None}})


class TestOpenRouter(ProviderContract):
    plugin = gateway_openrouter
    api = OpenRouterApi


class TestOpenRouterEdits(EditsContract):
    plugin = gateway_openrouter
    api = OpenRouterApi
    slug = "openrouter-nano-banana-2-1-edit"
