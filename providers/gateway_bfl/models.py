"""The models of Black Forest Labs on sale, and the request that they take.

The vendor bills by the megapixel; the first costs more than each further one. For FLUX.2, an input
picture also counts by the megapixel, each at the price of a further one: 1.5 cents at pro, 3 at
max, 0.2 at klein 9B (the vendor's own skills repository, 2026-02). It is not documented whether a
large picture is shrunk first, so more than 2048 by 2048 pixels, which count as five megapixels, are
refused. FLUX 3 bills only the output, according to resellers of its edits (fal, Runware, 2026-10).
"""

from typing import Any

from gateway import GenerationRequest
from gateway.vendors import Model, PictureLimits, base64_text, size_like

# When these costs were last checked.
CHECKED = "2026-11-22"
_EDITS = "Changes a picture as a prompt says."
# Of `SIZES` below, a little less. An edit that keeps a wide picture's ratio has fewer at 2K.
_PIXELS = {"1K": 900_000, "2K": 3_600_000}
_EDIT_PIXELS = {"1K": 900_000}
_FLUX_2 = PictureLimits(most_pixels=2048 * 2048, most_ratio=8)
# docs.bfl.ai, through Comfy's router and node. The limit of 20 MB of Base64 is beyond any buyer's
# picture.
_FLUX_3 = PictureLimits(least_side=256, most_pixels=16_000_000, most_ratio=64)

MODELS = (
    Model(
        slug="bfl-flux-2-pro",
        id="flux-2-pro",
        title="FLUX.2 [pro]",
        price="0.06",
        prices={"2K": "0.12"},
        resolutions=("1K", "2K"),
        least_pixels=_PIXELS,
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
        least_pixels=_PIXELS,
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
        least_pixels=_PIXELS,
        cost_micros=15_000,
        costs={"2K": 21_000},
    ),
    # POST /v1/flux-3-image takes a ratio and a resolution instead of pixels, and no format. Prices
    # of 2026-10 from three third parties: 0.048 at 1K, 0.10 at 2K. 4K, at 0.607, is omitted.
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
    Model(
        slug="bfl-flux-2-pro-edit",
        id="flux-2-pro",
        title="FLUX.2 [pro], edit",
        description=_EDITS,
        price="0.13",
        prices={"2K": "0.18"},
        resolutions=("1K", "2K"),
        least_pixels=_EDIT_PIXELS,
        cost_micros=105_000,
        costs={"2K": 150_000},
        edits=_FLUX_2,
    ),
    Model(
        slug="bfl-flux-2-max-edit",
        id="flux-2-max",
        title="FLUX.2 [max], edit",
        description=_EDITS,
        price="0.27",
        prices={"2K": "0.38"},
        resolutions=("1K", "2K"),
        least_pixels=_EDIT_PIXELS,
        cost_micros=220_000,
        costs={"2K": 310_000},
        edits=_FLUX_2,
    ),
    Model(
        slug="bfl-flux-2-klein-9b-edit",
        id="flux-2-klein-9b",
        title="FLUX.2 [klein] 9B, edit",
        description=_EDITS,
        price="0.03",
        prices={"2K": "0.04"},
        resolutions=("1K", "2K"),
        least_pixels=_EDIT_PIXELS,
        cost_micros=25_000,
        costs={"2K": 31_000},
        edits=_FLUX_2,
    ),
    Model(
        slug="bfl-flux-3-image-edit",
        id="flux-3-image",
        title="FLUX 3 Image, edit",
        description=_EDITS,
        price="0.08",
        prices={"2K": "0.16"},
        resolutions=("1K", "2K"),
        cost_micros=48_000,
        costs={"2K": 100_000},
        edits=_FLUX_3,
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
# For an edit that keeps its picture's ratio: the pixels of the sizes above, and the longest side
# according to third-party descriptions of the API.
_MAX_PIXELS = {"1K": 1024 * 1024, "2K": 4_000_000}
_LONGEST_SIDE = 2048
# The vendor has no webp: the gateway converts a png.
_FORMATS = {"png": "png", "jpg": "jpeg", "webp": "png"}


async def request_body(model: Model, request: GenerationRequest) -> dict[str, Any]:
    """Return the request of a model, with the size in pixels or as ratio and resolution.

    Edits without a ratio keep the picture's own.
    """
    if model.details.get("ask") == "ratio":
        return await _body_by_ratio(model, request)
    width, height = _size(model, request)
    order = {
        "prompt": request.prompt,
        "width": width,
        "height": height,
        "output_format": _FORMATS[request.output_format or "png"],
    }
    if request.attachment is not None:
        order["input_image"] = await base64_text(request.attachment)
    return order


async def _body_by_ratio(model: Model, request: GenerationRequest) -> dict[str, Any]:
    """Build a request to FLUX 3, which takes no other fields and no pixels."""
    order: dict[str, Any] = {
        "prompt": request.prompt,
        "resolution": _resolution(model, request).lower(),
    }
    if request.attachment is not None:
        order["images"] = [await base64_text(request.attachment)]
    if request.aspect_ratio or request.attachment is None:
        order["aspect_ratio"] = request.aspect_ratio or "1:1"
    return order


def _resolution(model: Model, request: GenerationRequest) -> str:
    return request.resolution or next(iter(model.resolutions), "1K")


def _size(model: Model, request: GenerationRequest) -> tuple[int, int]:
    resolution = _resolution(model, request)
    if request.aspect_ratio is None and request.attachment is not None:
        most = _MAX_PIXELS[resolution]
        return size_like(request.attachment, most_pixels=most, longest_side=_LONGEST_SIDE)
    return SIZES[request.aspect_ratio or "1:1", resolution]
