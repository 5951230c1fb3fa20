"""The models of fal.ai on sale, and the request that each takes.

fal's own prices are those of its model pages in 2026. Some models bill by the megapixel and round
up, so 1024 by 1024 pixels cost two.
"""

from typing import Any

from gateway import GenerationRequest
from gateway.vendors import Model

# When these costs were last compared with the vendor's prices.
CHECKED = "2026-11-22"

MODELS = (
    Model(
        slug="fal-nano-banana-2",
        id="fal-ai/nano-banana-2",
        title="Nano Banana 2 on fal",
        price="0.12",
        prices={"2K": "0.18", "4K": "0.24"},
        resolutions=("1K", "2K", "4K"),
        cost_micros=80_000,
        costs={"2K": 120_000, "4K": 160_000},
        details={"ratio": "aspect_ratio", "formats": ("png", "jpeg", "webp")},
    ),
    Model(
        slug="fal-flux-2-pro",
        id="fal-ai/flux-2-pro",
        title="FLUX.2 [pro] on fal",
        price="0.08",
        cost_micros=45_000,
        details={"ratio": "image_size", "formats": ("png", "jpeg")},
    ),
    Model(
        slug="fal-flux-dev",
        id="fal-ai/flux/dev",
        title="FLUX.1 [dev] on fal",
        price="0.08",
        cost_micros=50_000,
        details={"ratio": "image_size", "formats": ("png", "jpeg")},
    ),
    Model(
        slug="fal-flux-schnell",
        id="fal-ai/flux/schnell",
        title="FLUX.1 [schnell] on fal",
        price="0.02",
        cost_micros=6_000,
        details={"ratio": "image_size", "formats": ("png", "jpeg")},
    ),
)
_FORMATS = {"png": "png", "jpg": "jpeg", "webp": "webp"}
_IMAGE_SIZES = {
    "1:1": "square_hd",
    "4:3": "landscape_4_3",
    "3:4": "portrait_4_3",
    "16:9": "landscape_16_9",
    "9:16": "portrait_16_9",
}


def request_body(model: Model, request: GenerationRequest) -> dict[str, Any]:
    """Return the request of a model; a format that it lacks is requested as png and converted."""
    ratio = request.aspect_ratio or "1:1"
    wanted = _FORMATS[request.output_format or "png"]
    asked: dict[str, Any] = {
        "prompt": request.prompt,
        "output_format": wanted if wanted in model.details["formats"] else "png",
    }
    if model.details["ratio"] == "image_size":
        asked["image_size"] = _IMAGE_SIZES[ratio]
    else:
        asked["aspect_ratio"] = ratio
    if request.resolution:
        asked["resolution"] = request.resolution
    return asked
