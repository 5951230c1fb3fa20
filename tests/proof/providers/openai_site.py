"""A fake of an OpenAI-compatible images API, and its responses."""

import base64

from vendor_site import Vendor

import gateway_openai
from gateway import GenerationRequest
from gateway_testing.fakes.api import picture_of
from tests.conftest import PNG

KEY = "sk-never-to-be-seen"
PATH = "/v1/images/generations"
BOAT = GenerationRequest(prompt="a boat", aspect_ratio="16:9", output_format="jpg", resolution="1K")
PICTURE = {
    "created": 1_795_000_000,
    "data": [{"b64_json": base64.b64encode(PNG).decode()}],
    "background": "opaque",
    "output_format": "jpeg",
    "quality": "medium",
    "size": "1536x864",
    "usage": {
        "input_tokens": 8,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 8},
        "output_tokens": 1056,
        "output_tokens_details": {"image_tokens": 1056, "text_tokens": 0},
        "total_tokens": 1064,
    },
}


def sized(width, height):
    """Return the response with a picture of this size, as a purchase needs it."""
    made = base64.b64encode(picture_of(width, height)).decode()
    return PICTURE | {"data": [{"b64_json": made}], "size": f"{width}x{height}"}


class CompatibleServer(Vendor):
    plugin = gateway_openai
    request = BOAT

    def settings(self):
        return {"openai_api_key": KEY, "openai_base_url": f"{self.url}/v1"}
