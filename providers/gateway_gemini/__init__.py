"""Pictures by the Gemini models of Google, through the Gemini API.

On sale once `GATEWAY_GEMINI_API_KEY` is set.
"""

from collections.abc import Callable

import attrs
import typed_settings as ts

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl, secret, setting
from gateway.vendors import base_url, limit_or_none, models_on_sale, picture_endpoint
from gateway_gemini.models import MODELS
from gateway_gemini.painter import Painter


@attrs.frozen(kw_only=True)
class GeminiSettings:
    """The operator's settings for the Gemini API."""

    api_key: ts.SecretStr = secret(
        "Key of the Gemini API. It puts Google's picture models on sale.", example="AIza..."
    )
    models: tuple[str, ...] = setting(
        tuple(model.slug for model in MODELS),
        "Models of the Gemini API on sale: slugs of ours, or others with their price in USDC and "
        "the one that is asked the same way.",
        example="gemini-3-pro-image,gemini-4-image=0.08 like gemini-3-1-flash-lite-image",
    )
    base_url: str = setting(
        "https://generativelanguage.googleapis.com",
        "Address of the API, without its version.",
        # Some operators put a key into the path.
        shown=False,
    )
    max_concurrency: int = setting(
        0, "Pictures that one model is asked for at the same time; 0: as many as workers."
    )
    submits_per_minute: int = setting(
        0, "Pictures that one model is asked for in a minute; 0: no limit."
    )


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register("gemini", GeminiSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the chosen models on sale where there is a key.

    Each model is a provider of its own, because Google counts requests by model and retires models
    one by one.
    """
    section = settings.section("gemini", GeminiSettings)
    if not str(section.api_key):
        return
    outbound = Outbound(
        base_url(section.base_url, name="gemini_base_url"),
        headers={"x-goog-api-key": str(section.api_key)},
    )
    traits = Traits(
        max_concurrency=limit_or_none(section.max_concurrency, name="gemini_max_concurrency"),
        submits_per_minute=limit_or_none(
            section.submits_per_minute, name="gemini_submits_per_minute"
        ),
    )
    for model in models_on_sale(MODELS, section.models, prefix="gemini"):
        override = settings.endpoints.get(model.slug)
        asked = override.model if override is not None and override.model else model.id
        painter = Painter(outbound, model=asked, traits=traits)
        register(picture_endpoint(model, provider="gemini"), painter)
