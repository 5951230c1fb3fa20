"""The models of Replicate on sale, and the request that each takes.

Replicate's prices are on the models' pages. FLUX.2 [pro] costs 0.015 dollars a run and the same for
each input or output megapixel. Third parties report that Replicate shrinks pictures of more than
four megapixels; one of more than 2048 by 2048 pixels, which count as five, is refused. The other
models do not edit pictures by instruction.
"""

from typing import Any

from gateway import GenerationRequest
from gateway.vendors import Model, PictureLimits, size_like

# When these costs were last checked.
CHECKED = "2026-11-22"
# The models without a resolution make one megapixel, such as 1344 x 768.
_ONE_MEGAPIXEL = {"": 900_000}

MODELS = (
    Model(
        slug="replicate-flux-2-pro",
        id="black-forest-labs/flux-2-pro",
        title="FLUX.2 [pro] on Replicate",
        price="0.06",
        prices={"2K": "0.12"},
        resolutions=("1K", "2K"),
        least_pixels={"1K": 900_000, "2K": 3_400_000},
        cost_micros=30_000,
        costs={"2K": 75_000},
        details={"megapixels": {"1K": "1 MP", "2K": "4 MP"}},
    ),
    Model(
        slug="replicate-flux-1-1-pro",
        id="black-forest-labs/flux-1.1-pro",
        title="FLUX1.1 [pro] on Replicate",
        price="0.07",
        least_pixels=_ONE_MEGAPIXEL,
        cost_micros=40_000,
    ),
    Model(
        slug="replicate-flux-schnell",
        id="black-forest-labs/flux-schnell",
        title="FLUX.1 [schnell] on Replicate",
        price="0.01",
        least_pixels=_ONE_MEGAPIXEL,
        cost_micros=3_000,
    ),
    Model(
        slug="replicate-flux-2-pro-edit",
        id="black-forest-labs/flux-2-pro",
        title="FLUX.2 [pro] on Replicate, edit",
        description="Changes a picture as a prompt says.",
        price="0.13",
        prices={"2K": "0.18"},
        resolutions=("1K", "2K"),
        cost_micros=105_000,
        costs={"2K": 150_000},
        edits=PictureLimits(most_pixels=2048 * 2048, most_ratio=4),
        details={"megapixels": {"1K": "1 MP", "2K": "4 MP"}},
    ),
)
# For an edit that keeps its picture's ratio; sides are multiples of 32 pixels, at most 2048.
_MAX_PIXELS = {"1K": 1024 * 1024, "2K": 4_000_000}
_LONGEST_SIDE = 2048
_STEP = 32


def request_body(model: Model, request: GenerationRequest, sent: str = "") -> dict[str, Any]:
    """Return the request of a model; formats and ratios have the same names at Replicate.

    `sent` is the URL of the buyer's picture at Replicate. An edit without a ratio keeps the
    picture's own.
    """
    asked: dict[str, Any] = {
        "prompt": request.prompt,
        "output_format": request.output_format or "png",
    }
    if sent:
        asked["input_images"] = [sent]
    sizes = model.details.get("megapixels")
    resolution = request.resolution or next(iter(model.resolutions), "1K")
    if request.attachment is not None and request.aspect_ratio is None:
        width, height = size_like(
            request.attachment,
            most_pixels=_MAX_PIXELS[resolution],
            longest_side=_LONGEST_SIDE,
            step=_STEP,
        )
        return asked | {"aspect_ratio": "custom", "width": width, "height": height}
    asked["aspect_ratio"] = request.aspect_ratio or "1:1"
    if sizes:
        asked["resolution"] = sizes[resolution]
    return asked
