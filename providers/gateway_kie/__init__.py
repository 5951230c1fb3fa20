"""Pictures by the models that kie.ai resells, through its jobs.

On sale once `GATEWAY_KIE_API_KEY` is set.
"""

from collections.abc import Callable

import attrs
import typed_settings as ts

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl, secret, setting
from gateway.vendors import base_url, limit_or_none, models_on_sale, picture_endpoint
from gateway_kie.models import CHECKED, MODELS


@attrs.frozen(kw_only=True)
class KieSettings:
    """The operator's settings for kie.ai."""

    api_key: ts.SecretStr = secret(
        "API key of kie.ai; puts its models on sale.",
        example="0123456789abcdef",
        on_page=True,
    )
    models: tuple[str, ...] = setting(
        tuple(model.slug for model in MODELS),
        "Models on sale ([providers.md](providers.md#prices-and-models)).",
        example="kie-flux-2-pro,new-model=0.08 like kie-nano-banana-2-lite",
        on_page=True,
    )
    base_url: str = setting("https://api.kie.ai", "Address of kie.ai's API.")
    max_concurrency: int = setting(20, "Concurrent generations; 0: no limit.", on_page=True)
    submits_per_minute: int = setting(
        100,
        "Submits per minute (kie.ai accepts 20 in ten seconds); 0: no limit.",
        on_page=True,
    )


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings `GATEWAY_KIE_…`."""
    register("kie", KieSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Register the chosen models if there is a key."""
    section = settings.section("kie", KieSettings)
    if not str(section.api_key):
        return
    from gateway_kie.jobs import Jobs  # noqa: PLC0415 - only with a key

    models = models_on_sale(MODELS, section.models, prefix="kie")
    provider = Jobs(
        Outbound(
            base_url(section.base_url, name="kie_base_url"),
            headers={"Authorization": f"Bearer {section.api_key}"},
        ),
        models={model.slug: model for model in models},
        traits=Traits(
            max_concurrency=limit_or_none(section.max_concurrency, name="kie_max_concurrency"),
            submits_per_minute=limit_or_none(
                section.submits_per_minute, name="kie_submits_per_minute"
            ),
        ),
    )
    for model in models:
        register(picture_endpoint(model, provider="kie", checked=CHECKED), provider)
