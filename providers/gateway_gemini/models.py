"""The Gemini API's picture models and their prices.

Google's prices of one picture, in US dollars (2026-11): 3.1 Flash Lite 0.034; 3.1 Flash 0.067 at
1K, 0.101 at 2K, 0.151 at 4K; 3 Pro 0.134 at 1K and 2K, 0.24 at 4K. The prompt costs little more.
"""

from gateway.vendors import Model

_TIMEOUT_S = 240.0

MODELS = (
    Model(
        slug="gemini-3-1-flash-image",
        id="gemini-3.1-flash-image",
        title="Gemini 3.1 Flash Image",
        price="0.10",
        prices={"2K": "0.15", "4K": "0.22"},
        resolutions=("1K", "2K", "4K"),
        timeout_s=_TIMEOUT_S,
    ),
    Model(
        slug="gemini-3-pro-image",
        id="gemini-3-pro-image",
        title="Gemini 3 Pro Image",
        price="0.19",
        prices={"4K": "0.34"},
        resolutions=("1K", "2K", "4K"),
        timeout_s=_TIMEOUT_S,
    ),
    Model(
        slug="gemini-3-1-flash-lite-image",
        id="gemini-3.1-flash-lite-image",
        title="Gemini 3.1 Flash-Lite Image",
        price="0.05",
        resolutions=("1K",),
        timeout_s=_TIMEOUT_S,
    ),
)
