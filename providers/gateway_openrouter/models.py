"""The models of OpenRouter on sale, and the request that each takes.

OpenRouter passes on the bill of the vendor behind a model, and reports it in each response. Its
credits cost a surcharge of 5.5 %, which `cost_micros` includes. The vendors' prices of a picture,
in US dollars (2026-11-22, by third parties that read OpenRouter's list of image models in 2026-09
and 2026-10): FLUX 3 0.048 at 1K, 0.10 at 2K; Nano Banana 2.1 0.034, 0.05 and 0.11; Seedream 5 Flash
0.018 at any size, Pro 0.045 and 0.09; Qwen-Image 3 0.03; GPT Image 2.5 Flare at medium quality
0.013 at 1K, and no more than 0.03 for the other ratios. Grok Imagine 2.0 at medium quality 0.06 and
0.08 (2026-11-26, from copies of OpenRouter's catalogue and its list of a model's endpoints).

Three of them also edit pictures; for the others, the cost of an input picture and the ratio of an
edit are undocumented. FLUX 3 bills only the output (fal's page of its edits, 2026-10). At Nano
Banana an input picture counts as 1,120 tokens of at most 2 dollars a million, at GPT Image 2.5 as
1,536 tokens of 8 dollars, as measured for gpt-image-2.
"""

from typing import Any

from gateway import GenerationRequest
from gateway.vendors import Model, PictureLimits, data_uri

# When these costs were last checked.
CHECKED = "2026-11-22"
_EDITS = "Changes a picture as a prompt says."
# OpenAI makes no picture with fewer than 655,360 pixels.
_GPT_PIXELS = {"": 650_000}
MODELS = (
    Model(
        slug="openrouter-flux-3-image",
        id="black-forest-labs/flux-3-image",
        title="FLUX 3 Image on OpenRouter",
        price="0.08",
        prices={"2K": "0.16"},
        resolutions=("1K", "2K"),
        cost_micros=50_640,
        costs={"2K": 105_500},
    ),
    Model(
        slug="openrouter-nano-banana-2-1",
        id="google/gemini-nano-banana-2.1",
        title="Nano Banana 2.1 on OpenRouter",
        price="0.06",
        prices={"2K": "0.09", "4K": "0.18"},
        resolutions=("1K", "2K", "4K"),
        cost_micros=35_450,
        costs={"2K": 53_170, "4K": 120_270},
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
        costs={"2K": 94_950},
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
        slug="openrouter-grok-imagine-2",
        id="x-ai/grok-imagine-image-2.0",
        title="Grok Imagine Image 2.0 on OpenRouter",
        price="0.08",
        prices={"2K": "0.11"},
        resolutions=("1K", "2K"),
        cost_micros=63_300,
        costs={"2K": 84_400},
        details={"quality": "medium"},
    ),
    Model(
        slug="openrouter-gpt-image-2-5-flare",
        id="openai/gpt-image-2.5-flare",
        title="GPT Image 2.5 Flare on OpenRouter",
        price="0.05",
        least_pixels=_GPT_PIXELS,
        cost_micros=31_650,
        # The quality determines the cost, and `auto` may be high.
        details={"quality": "medium"},
    ),
    Model(
        slug="openrouter-flux-3-image-edit",
        id="black-forest-labs/flux-3-image",
        title="FLUX 3 Image on OpenRouter, edit",
        description=_EDITS,
        price="0.08",
        prices={"2K": "0.16"},
        resolutions=("1K", "2K"),
        cost_micros=50_640,
        costs={"2K": 105_500},
        # Limits from the model's documentation.
        edits=PictureLimits(least_side=256, most_pixels=16_000_000, most_ratio=64),
    ),
    Model(
        slug="openrouter-nano-banana-2-1-edit",
        id="google/gemini-nano-banana-2.1",
        title="Nano Banana 2.1 on OpenRouter, edit",
        description=_EDITS,
        price="0.06",
        prices={"2K": "0.09", "4K": "0.18"},
        resolutions=("1K", "2K", "4K"),
        cost_micros=37_820,
        costs={"2K": 55_540, "4K": 122_640},
        # Google documents it for Vertex AI.
        edits=PictureLimits(most_bytes=7_000_000),
    ),
    Model(
        slug="openrouter-gpt-image-2-5-flare-edit",
        id="openai/gpt-image-2.5-flare",
        title="GPT Image 2.5 Flare on OpenRouter, edit",
        description=_EDITS,
        price="0.07",
        least_pixels=_GPT_PIXELS,
        cost_micros=44_630,
        edits=PictureLimits(),
        details={"quality": "medium"},
    ),
)


async def request_body(model: Model, model_id: str, request: GenerationRequest) -> dict[str, Any]:
    """Return the request of a model; OpenRouter rejects fields that the model does not support.

    It has no output format, which few models support: the gateway converts. An edit without a ratio
    keeps the picture's own.
    """
    sent = request.attachment
    order = {
        "model": model_id,
        "prompt": request.prompt,
        "aspect_ratio": request.aspect_ratio or ("1:1" if sent is None else None),
        "resolution": (request.resolution or model.resolutions[0]) if model.resolutions else None,
        "quality": model.details.get("quality"),
    }
    if sent is not None:
        picture = {"type": "image_url", "image_url": {"url": await data_uri(sent)}}
        order["input_references"] = [picture]
    return {name: value for name, value in order.items() if value is not None}
