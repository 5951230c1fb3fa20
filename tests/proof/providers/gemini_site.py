"""A fake of Google's Gemini API, and its responses."""

import base64

from vendor_site import Vendor

import gateway_gemini
from gateway import GenerationRequest
from gateway_testing.fakes.api import picture_of
from tests.conftest import PNG

KEY = "AIza-never-to-be-seen"
BANANA = "gemini-nano-banana-2-1"
PRO = "gemini-3-pro-image"
LITE = "gemini-3-1-flash-lite-image"
PATH = "/v1beta/models/gemini-nano-banana-2.1"
SUBMIT = f"{PATH}:generateContent"
BOAT = GenerationRequest(prompt="a boat", aspect_ratio="16:9", output_format="jpg", resolution="2K")
ENCODED = base64.b64encode(PNG).decode()


def candidate(*parts, **more):
    made = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}
    return {"candidates": [made | more]}


def part(data=ENCODED, **more):
    return {"inlineData": {"mimeType": "image/png", "data": data}} | more


PICTURE = candidate(part()) | {
    "usageMetadata": {
        "promptTokenCount": 9,
        "candidatesTokenCount": 1680,
        "totalTokenCount": 1689,
        "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1680}],
    },
    "modelVersion": "gemini-nano-banana-2.1",
    "responseId": "k2xvaJ",
}


def sized(width, height):
    """Return the response with a picture of this size, as a purchase needs it."""
    made = base64.b64encode(picture_of(width, height)).decode()
    return PICTURE | candidate(part(made))


class Google(Vendor):
    plugin = gateway_gemini
    slug = BANANA
    request = BOAT

    def settings(self):
        return {"gemini_api_key": KEY, "gemini_base_url": self.url}
