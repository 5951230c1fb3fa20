"""The models on Replicate that we know how to ask, and how.

Prices of Replicate itself stand on the models' pages; that of FLUX.2 [pro] is 0.015 dollars for
a run and as much for each megapixel.
"""

from typing import Any

from gateway import GenerationRequest
from gateway.vendors import Model

MODELS = (
    Model(
        slug="replicate-flux-2-pro",
        id="black-forest-labs/flux-2-pro",
        title="FLUX.2 [pro] on Replicate",
        price="0.06",
        prices={"2K": "0.12"},
        resolutions=("1K", "2K"),
        cost_micros=30_000,
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


def order(model: Model, request: GenerationRequest) -> dict[str, Any]:
    """Return what a model is asked: its formats and ratios have the names of ours."""
    asked = {
        "prompt": request.prompt,
        "aspect_ratio": request.aspect_ratio or "1:1",
        "output_format": request.output_format or "png",
    }
    sizes = model.details.get("megapixels")
    if sizes:
        asked["resolution"] = sizes[request.resolution or model.resolutions[0]]
    return asked
