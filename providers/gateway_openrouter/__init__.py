"""Pictures and edits by the models that OpenRouter resells, through its images API.

On sale once `GATEWAY_OPENROUTER_API_KEY` is set.
"""

from collections.abc import Callable

import attrs
import typed_settings as ts

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl, secret, setting
from gateway.vendors import base_url, limit_or_none, model_endpoint, models_on_sale
from gateway_openrouter.models import CHECKED, MODELS


@attrs.frozen(kw_only=True)
class OpenRouterSettings:
    """The operator's settings for OpenRouter."""

    api_key: ts.SecretStr = secret(
        "API key of OpenRouter; puts its models on sale.",
        example="sk-or-v1-…",
        on_page=True,
    )
    models: tuple[str, ...] = setting(
        tuple(model.slug for model in MODELS),
        "Models on sale ([providers.md](providers.md#prices-and-models)).",
        example="openrouter-flux-3-image,krea/krea-2-large=0.10 like openrouter-flux-3-image",
        on_page=True,
    )
    base_url: str = setting("https://openrouter.ai/api/v1", "Address of OpenRouter's API.")
    max_concurrency: int = setting(20, "Concurrent generations; 0: no limit.", on_page=True)
    submits_per_minute: int = setting(0, "Submits per minute; 0: no limit.", on_page=True)


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings `GATEWAY_OPENROUTER_…`."""
    register("openrouter", OpenRouterSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Register the chosen models if there is a key."""
    section = settings.section("openrouter", OpenRouterSettings)
    if not str(section.api_key):
        return
    from gateway_openrouter.painter import Painter  # noqa: PLC0415 - only with a key

    models = models_on_sale(MODELS, section.models, prefix="openrouter")
    provider = Painter(
        Outbound(
            base_url(section.base_url, name="openrouter_base_url"),
            headers={"Authorization": f"Bearer {section.api_key}"},
        ),
        models={model.slug: model for model in models},
        traits=Traits(
            max_concurrency=limit_or_none(
                section.max_concurrency, name="openrouter_max_concurrency"
            ),
            submits_per_minute=limit_or_none(
                section.submits_per_minute, name="openrouter_submits_per_minute"
            ),
        ),
    )
    for model in models:
        register(model_endpoint(model, provider="openrouter", checked=CHECKED), provider)
