"""The Gemini API's picture models, which also edit pictures, and their prices.

Google's prices of one picture, in US dollars (2026-11): Nano Banana 2.1 0.034 at 1K; 3.1 Flash Lite
0.034; 3.1 Flash 0.067 at 1K, 0.101 at 2K, 0.151 at 4K; 3 Pro 0.134 at 1K and 2K, 0.24 at 4K. The
prompt adds little. The prices of Nano Banana 2.1 are from third parties: LiteLLM's table has 1K,
and fal's page of the model about 0.11 for 4K; the 0.06 for 2K is a guess. An input picture counts
as 1,120 tokens (Google's guide to Gemini 3). They cost 0.0023 at 3 Pro and less elsewhere, so an
edit has the price of a picture.
"""

import attrs

from gateway.vendors import Model, PictureLimits

_TIMEOUT_S = 240.0
# A tenth below Google's sizes: 1,023,000 pixels or more at 1K (1184 x 864), and 4 and 16 times as
# many. Those of Nano Banana 2.1 are not documented.
_PIXELS = {"1K": 920_000, "2K": 3_680_000, "4K": 14_700_000}
# Of a picture in a request, before Base64; Google documents it for Vertex AI.
_MAX_SENT_BYTES = 7_000_000

# When these costs were last checked.
CHECKED = "2026-11-22"

MODELS = (
    Model(
        slug="gemini-nano-banana-2-1",
        id="gemini-nano-banana-2.1",
        title="Gemini Nano Banana 2.1",
        price="0.05",
        prices={"2K": "0.08", "4K": "0.17"},
        resolutions=("1K", "2K", "4K"),
        cost_micros=33_600,
        costs={"2K": 60_000, "4K": 114_000},
        timeout_s=_TIMEOUT_S,
    ),
    Model(
        slug="gemini-3-pro-image",
        id="gemini-3-pro-image",
        title="Gemini 3 Pro Image",
        price="0.19",
        prices={"4K": "0.34"},
        resolutions=("1K", "2K", "4K"),
        least_pixels=_PIXELS,
        cost_micros=134_000,
        costs={"4K": 240_000},
        timeout_s=_TIMEOUT_S,
    ),
    Model(
        slug="gemini-3-1-flash-lite-image",
        id="gemini-3.1-flash-lite-image",
        title="Gemini 3.1 Flash-Lite Image",
        price="0.05",
        resolutions=("1K",),
        least_pixels=_PIXELS,
        cost_micros=34_000,
        timeout_s=_TIMEOUT_S,
    ),
    Model(
        slug="gemini-3-1-flash-image",
        id="gemini-3.1-flash-image",
        title="Gemini 3.1 Flash Image",
        price="0.10",
        prices={"2K": "0.15", "4K": "0.22"},
        resolutions=("1K", "2K", "4K"),
        least_pixels=_PIXELS,
        cost_micros=67_000,
        costs={"2K": 101_000, "4K": 151_000},
        timeout_s=_TIMEOUT_S,
        # Google's changelog of 2026-10-06 deprecates it in favor of Nano Banana 2.1; two third
        # parties report that it was shut down on this day.
        retires="2026-10-29",
    ),
)
# Tokens of an input picture, and US dollars per million tokens at the most expensive model.
SENT_PICTURE_TOKENS = 1_120
SENT_DOLLARS = 2.0
ON_SALE = tuple(model.slug for model in MODELS if model.retires is None)


def editing(model: Model) -> Model:
    """Return the edit offer of a model; each edit also costs the tokens of the input picture."""
    sent = round(SENT_PICTURE_TOKENS * SENT_DOLLARS)
    return attrs.evolve(
        model,
        slug=f"{model.slug}-edit",
        title=f"{model.title}, edit",
        description="Changes a picture as a prompt says.",
        edits=PictureLimits(most_bytes=_MAX_SENT_BYTES),
        cost_micros=None if model.cost_micros is None else model.cost_micros + sent,
        costs={resolution: cost + sent for resolution, cost in model.costs.items()},
    )
