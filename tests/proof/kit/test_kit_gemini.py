"""The bundled provider of Google's Gemini API passes the kit."""

import gateway_gemini
from gateway.testing import FakeApi, ProviderContract, Reply


class GeminiApi(FakeApi):
    """`generateContent` with a picture in `inlineData`; 200 without one after a filter."""

    submit = r"POST /v1(beta)?/models/gemini-nano-banana-2\.1:generateContent"
    others = r"GET /v1(beta)?/models/gemini-nano-banana-2\.1"

    def settings(self, url):
        return {"gemini_api_key": "AIza-secret", "gemini_base_url": url}

    def made(self, ask):
        picture = {"inlineData": {"mimeType": "image/png", "data": ask.made.base64}}
        return Reply({"candidates": [{"content": {"parts": [picture]}, "finishReason": "STOP"}]})

    def moderated(self, ask):
        return Reply({"candidates": [{"finishReason": "IMAGE_SAFETY"}]})

    def nothing(self, ask):
        return Reply({"candidates": [{"content": {"parts": []}, "finishReason": "NO_IMAGE"}]})

    def account(self, ask):
        reason = {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID",
        }
        return Reply({"error": {"status": "INVALID_ARGUMENT", "details": [reason]}}, 400)

    def limited(self, ask):
        wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
        return Reply({"error": {"status": "RESOURCE_EXHAUSTED", "details": [wait]}}, 429)

    def busy(self, ask):
        return Reply({"error": {"code": 500, "status": "INTERNAL"}}, 500)

    def other(self, ask):
        return Reply({"name": "models/gemini-nano-banana-2.1"})


class TestGemini(ProviderContract):
    plugin = gateway_gemini
    api = GeminiApi
    slug = "gemini-nano-banana-2-1"


class TestGeminiEdits(ProviderContract):
    plugin = gateway_gemini
    api = GeminiApi
    slug = "gemini-nano-banana-2-1-edit"
