"""The models of kie.ai on sale, and the request that each takes.

kie.ai bills credits, of which 200 cost a dollar. Its prices change often: see kie.ai/pricing. The
costs here are from third parties, because kie.ai's own page could not be read.
"""

from typing import Any

from gateway import GenerationRequest
from gateway.vendors import Model

# When these costs were last checked.
CHECKED = "2026-11-22"

MODELS = (
    Model(
        slug="kie-nano-banana-2",
        id="nano-banana-2",
        title="Nano Banana 2 on kie.ai",
        price="0.08",
        prices={"2K": "0.12", "4K": "0.18"},
        resolutions=("1K", "2K", "4K"),
        # As of the same model at Google.
        least_pixels={"1K": 920_000, "2K": 3_680_000, "4K": 14_700_000},
        cost_micros=40_000,
        costs={"2K": 60_000, "4K": 90_000},
        details={"fields": ("resolution", "output_format")},
    ),
    Model(
        slug="kie-nano-banana-2-lite",
        id="nano-banana-2-lite",
        title="Nano Banana 2 Lite on kie.ai",
        price="0.05",
        least_pixels={"": 900_000},
        cost_micros=20_000,
        details={"fields": ()},
    ),
    Model(
        slug="kie-flux-2-pro",
        id="flux-2/pro-text-to-image",
        title="FLUX.2 [pro] on kie.ai",
        price="0.05",
        prices={"2K": "0.07"},
        resolutions=("1K", "2K"),
        cost_micros=25_000,
        costs={"2K": 35_000},
        max_prompt_chars=5_000,
        details={"fields": ("resolution",)},
    ),
)
# kie.ai has no webp: the gateway converts a png.
_FORMATS = {"png": "png", "jpg": "jpg", "webp": "png"}


def request_body(model: Model, request: GenerationRequest) -> dict[str, Any]:
    """Return the request of a model; every model takes a ratio, some a resolution or a format."""
    asked = {"prompt": request.prompt, "aspect_ratio": request.aspect_ratio or "1:1"}
    if "resolution" in model.details["fields"]:
        asked["resolution"] = request.resolution or model.resolutions[0]
    if "output_format" in model.details["fields"]:
        asked["output_format"] = _FORMATS[request.output_format or "png"]
    return asked
