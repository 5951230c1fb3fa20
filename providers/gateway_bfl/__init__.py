"""Pictures and edits by the FLUX models of Black Forest Labs, from their own API.

On sale once `GATEWAY_BFL_API_KEY` is set.
"""

from collections.abc import Callable

import attrs
import typed_settings as ts

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl, secret, setting
from gateway.vendors import base_url, limit_or_none, model_endpoint, models_on_sale
from gateway_bfl.models import CHECKED, MODELS


@attrs.frozen(kw_only=True)
class BflSettings:
    """The operator's settings for Black Forest Labs."""

    api_key: ts.SecretStr = secret(
        "API key of Black Forest Labs; puts its models on sale.",
        example="bfl_0123456789abcdef",
        on_page=True,
    )
    models: tuple[str, ...] = setting(
        tuple(model.slug for model in MODELS),
        "Models on sale ([providers.md](providers.md#prices-and-models)).",
        example="bfl-flux-2-pro,flux-3-fast=0.05 like bfl-flux-3-image",
        on_page=True,
    )
    base_url: str = setting(
        "https://api.bfl.ai",
        "Address of the API; https://api.eu.bfl.ai and https://api.us.bfl.ai stay in their region.",
    )
    max_concurrency: int = setting(
        20, "Concurrent generations (24 are allowed); 0: no limit.", on_page=True
    )
    submits_per_minute: int = setting(0, "Submits per minute; 0: no limit.", on_page=True)


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings `GATEWAY_BFL_…`."""
    register("bfl", BflSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Register the chosen models if there is a key."""
    section = settings.section("bfl", BflSettings)
    if not str(section.api_key):
        return
    from gateway_bfl.tasks import Tasks  # noqa: PLC0415 - only with a key

    models = models_on_sale(MODELS, section.models, prefix="bfl")
    provider = Tasks(
        Outbound(
            base_url(section.base_url, name="bfl_base_url"),
            headers={"x-key": str(section.api_key)},
            hosts=("*.bfl.ai",),  # a task is polled in its own region
        ),
        models={model.slug: model for model in models},
        traits=Traits(
            max_concurrency=limit_or_none(section.max_concurrency, name="bfl_max_concurrency"),
            submits_per_minute=limit_or_none(
                section.submits_per_minute, name="bfl_submits_per_minute"
            ),
        ),
    )
    for model in models:
        register(model_endpoint(model, provider="bfl", checked=CHECKED), provider)
