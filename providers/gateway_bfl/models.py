"""The models of Black Forest Labs on sale, and the request that they take.

The vendor bills by the megapixel; the first costs more than each further one.
"""

from typing import Any

from gateway import GenerationRequest
from gateway.vendors import Model

# When these costs were last compared with the vendor's prices.
CHECKED = "2026-11-22"

MODELS = (
    Model(
        slug="bfl-flux-2-pro",
        id="flux-2-pro",
        title="FLUX.2 [pro]",
        price="0.06",
        prices={"2K": "0.12"},
        resolutions=("1K", "2K"),
        cost_micros=30_000,
        costs={"2K": 75_000},
    ),
    Model(
        slug="bfl-flux-2-max",
        id="flux-2-max",
        title="FLUX.2 [max]",
        price="0.14",
        prices={"2K": "0.24"},
        resolutions=("1K", "2K"),
        cost_micros=70_000,
        costs={"2K": 160_000},
    ),
    Model(
        slug="bfl-flux-2-klein-9b",
        id="flux-2-klein-9b",
        title="FLUX.2 [klein] 9B",
        price="0.03",
        prices={"2K": "0.04"},
        resolutions=("1K", "2K"),
        cost_micros=15_000,
        costs={"2K": 21_000},
    ),
    # POST /v1/flux-3-image takes a ratio and a resolution instead of pixels, and no format. Prices
    # of 2026-10 as three third parties name them: 0.048 at 1K, 0.10 at 2K. 4K, at 0.607, is left
    # out.
    Model(
        slug="bfl-flux-3-image",
        id="flux-3-image",
        title="FLUX 3 Image",
        price="0.08",
        prices={"2K": "0.16"},
        resolutions=("1K", "2K"),
        cost_micros=48_000,
        costs={"2K": 100_000},
        details={"ask": "ratio"},
    ),
)
# Width and height in pixels: multiples of 16, at most 4,000,000 pixels together.
SIZES = {
    ("1:1", "1K"): (1024, 1024),
    ("4:3", "1K"): (1152, 864),
    ("3:4", "1K"): (864, 1152),
    ("16:9", "1K"): (1280, 720),
    ("9:16", "1K"): (720, 1280),
    ("1:1", "2K"): (1984, 1984),
    ("4:3", "2K"): (2304, 1728),
    ("3:4", "2K"): (1728, 2304),
    ("16:9", "2K"): (2560, 1440),
    ("9:16", "2K"): (1440, 2560),
}
# The vendor has no webp: the gateway converts a png.
_FORMATS = {"png": "png", "jpg": "jpeg", "webp": "png"}


def request_body(model: Model, request: GenerationRequest) -> dict[str, Any]:
    """Return the request of a model, with the size in pixels or as a ratio and a resolution."""
    resolution = request.resolution or next(iter(model.resolutions), "1K")
    ratio = request.aspect_ratio or "1:1"
    if model.details.get("ask") == "ratio":
        return {
            "prompt": request.prompt,
            "aspect_ratio": ratio,
            "resolution": resolution.lower(),
        }
    width, height = SIZES[ratio, resolution]
    return {
        "prompt": request.prompt,
        "width": width,
        "height": height,
        "output_format": _FORMATS[request.output_format or "png"],
    }
