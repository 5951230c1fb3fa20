"""The models of OpenRouter on sale, and the request that each takes.

OpenRouter bills what the vendor behind a model bills, and names it in each answer. Buying its
credits costs 5.5 % more, which `cost_micros` holds. The vendors' prices of a picture, in US dollars
(2026-11-22, by third parties that read OpenRouter's list of image models in 2026-09 and 2026-10):
FLUX 3 0.048 at 1K, 0.10 at 2K; Nano Banana 2.1 0.034, 0.05 and 0.11; Seedream 5 Flash 0.018 at any
size, Pro 0.045 and 0.09; Qwen-Image 3 0.03; Grok Imagine Quality 0.05; GPT Image 2.5 Flare at
medium quality 0.013 at 1K, and no more than 0.03 for the other ratios.
"""

from typing import Any

from gateway import GenerationRequest
from gateway.vendors import Model

# When these costs were last compared with the vendor's prices.
CHECKED = "2026-11-22"
MODELS = (
    Model(
        slug="openrouter-flux-3-image",
        id="black-forest-labs/flux-3-image",
        title="FLUX 3 Image on OpenRouter",
        price="0.08",
        prices={"2K": "0.16"},
        resolutions=("1K", "2K"),
        cost_micros=50_640,
    ),
    Model(
        slug="openrouter-nano-banana-2-1",
        id="google/gemini-nano-banana-2.1",
        title="Nano Banana 2.1 on OpenRouter",
        price="0.06",
        prices={"2K": "0.09", "4K": "0.18"},
        resolutions=("1K", "2K", "4K"),
        cost_micros=35_450,
    ),
    Model(
        slug="openrouter-seedream-5-flash",
        id="bytedance-seed/seedream-5-0-flash",
        title="Seedream 5.0 Flash on OpenRouter",
        price="0.03",
        resolutions=("1K", "2K"),
        cost_micros=18_990,
    ),
    Model(
        slug="openrouter-seedream-5-pro",
        id="bytedance-seed/seedream-5-0-pro",
        title="Seedream 5.0 Pro on OpenRouter",
        price="0.08",
        prices={"2K": "0.15"},
        resolutions=("1K", "2K"),
        cost_micros=47_480,
    ),
    Model(
        slug="openrouter-qwen-image-3",
        id="qwen/qwen-image-3",
        title="Qwen-Image 3 on OpenRouter",
        price="0.05",
        resolutions=("1K", "2K"),
        cost_micros=31_650,
    ),
    Model(
        slug="openrouter-grok-imagine-quality",
        id="x-ai/grok-imagine-image-quality",
        title="Grok Imagine Image Quality on OpenRouter",
        price="0.08",
        resolutions=("1K",),
        cost_micros=52_750,
    ),
    Model(
        slug="openrouter-gpt-image-2-5-flare",
        id="openai/gpt-image-2.5-flare",
        title="GPT Image 2.5 Flare on OpenRouter",
        price="0.05",
        cost_micros=31_650,
        # Quality decides what it costs, and `auto` may be high.
        details={"quality": "medium"},
    ),
)


def request_body(model: Model, model_id: str, request: GenerationRequest) -> dict[str, Any]:
    """Return the request of a model; OpenRouter refuses fields that the model does not take.

    It names no output format, which few models take: the gateway converts.
    """
    order = {
        "model": model_id,
        "prompt": request.prompt,
        "aspect_ratio": request.aspect_ratio or "1:1",
        "resolution": (request.resolution or model.resolutions[0]) if model.resolutions else None,
        "quality": model.details.get("quality"),
    }
    return {name: value for name, value in order.items() if value is not None}
