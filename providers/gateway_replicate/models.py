"""The models of Replicate on sale, and the request that each takes.

Replicate's own prices are on the models' pages. FLUX.2 [pro] costs 0.015 dollars a run and as much
for each megapixel.
"""

from typing import Any

from gateway import GenerationRequest
from gateway.vendors import Model

# When these costs were last compared with the vendor's prices.
CHECKED = "2026-11-22"

MODELS = (
    Model(
        slug="replicate-flux-2-pro",
        id="black-forest-labs/flux-2-pro",
        title="FLUX.2 [pro] on Replicate",
        price="0.06",
        prices={"2K": "0.12"},
        resolutions=("1K", "2K"),
        cost_micros=30_000,
        costs={"2K": 75_000},
        details={"megapixels": {"1K": "1 MP", "2K": "4 MP"}},
    ),
    Model(
        slug="replicate-flux-1-1-pro",
        id="black-forest-labs/flux-1.1-pro",
        title="FLUX1.1 [pro] on Replicate",
        price="0.07",
        cost_micros=40_000,
    ),
    Model(
        slug="replicate-flux-schnell",
        id="black-forest-labs/flux-schnell",
        title="FLUX.1 [schnell] on Replicate",
        price="0.01",
        cost_micros=3_000,
    ),
)


def request_body(model: Model, request: GenerationRequest) -> dict[str, Any]:
    """Return the request of a model; Replicate names formats and ratios as the gateway does."""
    asked = {
        "prompt": request.prompt,
        "aspect_ratio": request.aspect_ratio or "1:1",
        "output_format": request.output_format or "png",
    }
    sizes = model.details.get("megapixels")
    if sizes:
        asked["resolution"] = sizes[request.resolution or model.resolutions[0]]
    return asked
