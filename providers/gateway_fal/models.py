"""The models of fal.ai on sale, and the request that each takes.

fal's own prices are from its model pages in 2026. Some models bill by the megapixel and round up,
so 1024 by 1024 pixels cost two. Nano Banana 2.1 is billed by the token: fal's guide (fal.ai/learn,
2026-10) estimates a picture at 0.040 US dollars at 1K, 0.062 at 2K and 0.134 at 4K; its thoughts
cost 0.002 more, according to third parties. Third-party code calls it with the fields of Nano
Banana 2.

Two models also edit pictures. An edit by Nano Banana 2 costs as much as a picture (fal's page,
2026). FLUX.2 [pro] bills the input picture by the megapixel, each at 1.5 cents; third parties
report that fal shrinks more than four. More than 2048 by 2048 pixels, which count as five, are
refused. FLUX.1 redraws a picture and follows no instruction, so it is not on sale for edits.
"""

from typing import Any

from gateway import GenerationRequest
from gateway.vendors import Model, PictureLimits, data_uri, size_like

# When these costs were last checked.
CHECKED = "2026-11-22"
_EDITS = "Changes a picture as a prompt says."
# A tenth below Google's sizes of Nano Banana 2: 1,023,000 pixels or more at 1K, and 4 and 16 times
# as many. Those of Nano Banana 2.1 are not documented.
_BANANA_PIXELS = {"1K": 920_000, "2K": 3_680_000, "4K": 14_700_000}
# `landscape_16_9` has 1024 x 576 pixels.
_FLUX_PIXELS = {"": 580_000}
# According to fal's developers, a data URI of more than 10 MB does not work (fal-ai/fal, pull
# request 178). In Base64, this size takes 9.4 MB.
_MAX_SENT_BYTES = 7_000_000
# An edit in pixels that keeps its picture's ratio has one megapixel, with sides of 512 to 2048
# pixels.
_MAX_PIXELS = 1024 * 1024
_LONGEST_SIDE = 2048
_MAX_RATIO = 4

MODELS = (
    Model(
        slug="fal-nano-banana-2",
        id="fal-ai/nano-banana-2",
        title="Nano Banana 2 on fal",
        price="0.12",
        prices={"2K": "0.18", "4K": "0.24"},
        resolutions=("1K", "2K", "4K"),
        least_pixels=_BANANA_PIXELS,
        cost_micros=80_000,
        costs={"2K": 120_000, "4K": 160_000},
        details={"ratio": "aspect_ratio", "formats": ("png", "jpeg", "webp")},
    ),
    Model(
        slug="fal-nano-banana-2-1",
        id="google/nano-banana-2.1",
        title="Nano Banana 2.1 on fal",
        price="0.06",
        prices={"2K": "0.09", "4K": "0.18"},
        resolutions=("1K", "2K", "4K"),
        cost_micros=42_000,
        costs={"2K": 64_000, "4K": 136_000},
        details={"ratio": "aspect_ratio", "formats": ("png", "jpeg")},
    ),
    Model(
        slug="fal-flux-2-pro",
        id="fal-ai/flux-2-pro",
        title="FLUX.2 [pro] on fal",
        price="0.08",
        least_pixels=_FLUX_PIXELS,
        cost_micros=45_000,
        details={"ratio": "image_size", "formats": ("png", "jpeg")},
    ),
    Model(
        slug="fal-flux-dev",
        id="fal-ai/flux/dev",
        title="FLUX.1 [dev] on fal",
        price="0.08",
        least_pixels=_FLUX_PIXELS,
        cost_micros=50_000,
        details={"ratio": "image_size", "formats": ("png", "jpeg")},
    ),
    Model(
        slug="fal-flux-schnell",
        id="fal-ai/flux/schnell",
        title="FLUX.1 [schnell] on fal",
        price="0.02",
        least_pixels=_FLUX_PIXELS,
        cost_micros=6_000,
        details={"ratio": "image_size", "formats": ("png", "jpeg")},
    ),
    Model(
        slug="fal-nano-banana-2-edit",
        id="fal-ai/nano-banana-2/edit",
        title="Nano Banana 2 on fal, edit",
        description=_EDITS,
        price="0.12",
        prices={"2K": "0.18", "4K": "0.24"},
        resolutions=("1K", "2K", "4K"),
        least_pixels=_BANANA_PIXELS,
        cost_micros=80_000,
        costs={"2K": 120_000, "4K": 160_000},
        edits=PictureLimits(most_bytes=_MAX_SENT_BYTES),
        details={"ratio": "aspect_ratio", "formats": ("png", "jpeg", "webp")},
    ),
    Model(
        slug="fal-flux-2-pro-edit",
        id="fal-ai/flux-2-pro/edit",
        title="FLUX.2 [pro] on fal, edit",
        description=_EDITS,
        price="0.15",
        least_pixels=_FLUX_PIXELS,
        cost_micros=120_000,
        edits=PictureLimits(
            most_bytes=_MAX_SENT_BYTES, most_pixels=2048 * 2048, most_ratio=_MAX_RATIO
        ),
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


async def request_body(model: Model, request: GenerationRequest) -> dict[str, Any]:
    """Return the request of a model; an unsupported format is requested as png and converted.

    Edits without a ratio keep the picture's own.
    """
    wanted = _FORMATS[request.output_format or "png"]
    asked: dict[str, Any] = {
        "prompt": request.prompt,
        "output_format": wanted if wanted in model.details["formats"] else "png",
        **_shape(model, request),
    }
    if request.resolution:
        asked["resolution"] = request.resolution
    if request.attachment is not None:
        asked["image_urls"] = [await data_uri(request.attachment)]
    return asked


def _shape(model: Model, request: GenerationRequest) -> dict[str, Any]:
    """Return the ratio's field, or none if the model chooses it."""
    ratio = request.aspect_ratio
    if ratio is None and request.attachment is not None:
        if model.details["ratio"] != "image_size":
            # The default is `auto`.
            return {}
        width, height = size_like(
            request.attachment, most_pixels=_MAX_PIXELS, longest_side=_LONGEST_SIDE
        )
        # The size that `auto` chooses is undocumented, and each megapixel is billed.
        return {"image_size": {"width": width, "height": height}}
    if model.details["ratio"] == "image_size":
        return {"image_size": _IMAGE_SIZES[ratio or "1:1"]}
    return {"aspect_ratio": ratio or "1:1"}
