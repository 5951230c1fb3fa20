"""Pictures and edits by the models that run on Replicate, as predictions.

On sale once `GATEWAY_REPLICATE_API_KEY` is set.
"""

from collections.abc import Callable

import attrs
import typed_settings as ts

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl, secret, setting
from gateway.vendors import base_url, limit_or_none, model_endpoint, models_on_sale
from gateway_replicate.models import CHECKED, MODELS


@attrs.frozen(kw_only=True)
class ReplicateSettings:
    """The operator's settings for Replicate."""

    api_key: ts.SecretStr = secret(
        "API token of Replicate; puts its models on sale.",
        example="r8_…",
        on_page=True,
    )
    models: tuple[str, ...] = setting(
        tuple(model.slug for model in MODELS),
        "Models on sale ([providers.md](providers.md#prices-and-models)): slugs, `owner/name`, or "
        "`owner/name:version`.",
        example="replicate-flux-2-pro,owner/new-model=0.08 like replicate-flux-schnell",
        on_page=True,
    )
    base_url: str = setting("https://api.replicate.com", "Address of Replicate's API.")
    max_concurrency: int = setting(20, "Concurrent generations; 0: no limit.", on_page=True)
    submits_per_minute: int = setting(
        500,
        "Submits per minute (Replicate accepts 600); 0: no limit.",
        on_page=True,
    )


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings `GATEWAY_REPLICATE_…`."""
    register("replicate", ReplicateSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Register the chosen models if there is a key."""
    section = settings.section("replicate", ReplicateSettings)
    if not str(section.api_key):
        return
    from gateway_replicate.predictions import Predictions  # noqa: PLC0415 - only with a key

    models = models_on_sale(MODELS, section.models, prefix="replicate")
    provider = Predictions(
        Outbound(
            base_url(section.base_url, name="replicate_base_url"),
            headers={"Authorization": f"Bearer {section.api_key}"},
            hosts=("api.replicate.com",),
        ),
        models={model.slug: model for model in models},
        traits=Traits(
            max_concurrency=limit_or_none(
                section.max_concurrency, name="replicate_max_concurrency"
            ),
            submits_per_minute=limit_or_none(
                section.submits_per_minute, name="replicate_submits_per_minute"
            ),
        ),
    )
    for model in models:
        register(model_endpoint(model, provider="replicate", checked=CHECKED), provider)
