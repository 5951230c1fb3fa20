"""Pictures and edits by the models of fal.ai, through its queue.

On sale once `GATEWAY_FAL_API_KEY` is set.
"""

from collections.abc import Callable

import attrs
import typed_settings as ts

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl, secret, setting
from gateway.vendors import base_url, limit_or_none, model_endpoint, models_on_sale
from gateway_fal.models import CHECKED, MODELS


@attrs.frozen(kw_only=True)
class FalSettings:
    """The operator's settings for fal."""

    api_key: ts.SecretStr = secret(
        "API key of fal.ai; puts its models on sale.",
        example="id:secret",
        on_page=True,
    )
    models: tuple[str, ...] = setting(
        tuple(model.slug for model in MODELS),
        "Models on sale ([providers.md](providers.md#prices-and-models)).",
        example="fal-flux-2-pro,fal-ai/new-model=0.08 like fal-nano-banana-2",
        on_page=True,
    )
    base_url: str = setting("https://queue.fal.run", "Address of fal's queue.")
    platform_url: str = setting(
        "https://api.fal.ai", "Address of fal's platform API, which checks the key."
    )
    max_concurrency: int = setting(
        2, "Concurrent generations; new accounts have 2; 0: no limit.", on_page=True
    )
    submits_per_minute: int = setting(0, "Submits per minute; 0: no limit.", on_page=True)


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings `GATEWAY_FAL_…`."""
    register("fal", FalSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Register the chosen models if there is a key."""
    section = settings.section("fal", FalSettings)
    if not str(section.api_key):
        return
    from gateway_fal.queue import Queue  # noqa: PLC0415 - only with a key

    key = {"Authorization": f"Key {section.api_key}"}
    models = models_on_sale(MODELS, section.models, prefix="fal")
    provider = Queue(
        Outbound(
            base_url(section.base_url, name="fal_base_url"), headers=key, hosts=("*.fal.run",)
        ),
        platform=Outbound(base_url(section.platform_url, name="fal_platform_url"), headers=key),
        models={model.slug: model for model in models},
        traits=Traits(
            max_concurrency=limit_or_none(section.max_concurrency, name="fal_max_concurrency"),
            submits_per_minute=limit_or_none(
                section.submits_per_minute, name="fal_submits_per_minute"
            ),
        ),
    )
    for model in models:
        register(model_endpoint(model, provider="fal", checked=CHECKED), provider)
