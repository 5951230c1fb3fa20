"""Pictures by an OpenAI-compatible images API: OpenAI's own, or a server of the operator's.

On sale once `GATEWAY_OPENAI_API_KEY` is set, or `GATEWAY_OPENAI_BASE_URL` names another server.
"""

from collections.abc import Callable

from gateway import Endpoint, Outbound, Provider, Settings, hookimpl
from gateway.vendors import base_url, picture_endpoint
from gateway_openai.painter import Painter
from gateway_openai.settings import OPENAI, OpenAISettings, model_on_sale, traits


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register("openai", OpenAISettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the model on sale if there is a key, or another server, which may need no key."""
    section = settings.section("openai", OpenAISettings)
    address = base_url(section.base_url, name="openai_base_url")
    key, is_openai = str(section.api_key), address == OPENAI
    if not key and is_openai:
        return
    painter = Painter(
        Outbound(address, headers={"Authorization": f"Bearer {key}"} if key else {}),
        quality=section.image_quality if is_openai else None,
        traits=traits(section),
        response_format=None if is_openai else "b64_json",
    )
    register(picture_endpoint(model_on_sale(section), provider="openai"), painter)
