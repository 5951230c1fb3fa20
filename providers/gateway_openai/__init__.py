"""Pictures and edits by an OpenAI-compatible API: OpenAI's own, or the operator's server.

On sale once `GATEWAY_OPENAI_API_KEY` is set, or `GATEWAY_OPENAI_BASE_URL` names another server.
"""

from collections.abc import Callable

from gateway import Endpoint, Outbound, Provider, Settings, hookimpl
from gateway.vendors import base_url, edit_endpoint, picture_endpoint
from gateway_openai.settings import (
    CHECKED,
    OpenAISettings,
    edit_on_sale,
    is_openai,
    model_on_sale,
    traits,
)


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register("openai", OpenAISettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the model on sale if there is a key, or another server, which may need no key."""
    section = settings.section("openai", OpenAISettings)
    key, is_own = str(section.api_key), is_openai(section)
    if not key and is_own:
        return
    from gateway_openai.painter import Painter  # noqa: PLC0415 - only with a key

    painter = Painter(
        Outbound(
            base_url(section.base_url, name="openai_base_url"),
            headers={"Authorization": f"Bearer {key}"} if key else {},
        ),
        quality=section.image_quality if is_own else None,
        is_openai=is_own,
        traits=traits(section),
        response_format=None if is_own else "b64_json",
    )
    model = model_on_sale(section, settings)
    register(picture_endpoint(model, provider="openai", checked=CHECKED), painter)
    editing = edit_on_sale(section, settings)
    if editing is not None:
        register(edit_endpoint(editing, provider="openai", checked=CHECKED), painter)
