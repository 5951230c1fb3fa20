"""Pictures by an OpenAI-compatible images API: OpenAI's own, or a server of the operator's.

On sale once `GATEWAY_OPENAI_API_KEY` is set, or `GATEWAY_OPENAI_BASE_URL` names another server.
"""

from collections.abc import Callable

from gateway import Choice, Endpoint, Outbound, Provider, Settings, SettingsError, hookimpl, usdc
from gateway_openai.painter import TIMEOUT_S, Painter
from gateway_openai.sizes import RESOLUTIONS, SIZES

OPENAI = "https://api.openai.com/v1"
_DOWNLOADS_S = 60.0  # after the answer: fetching what it links to


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the model on sale where there is a key, or a server that may need none."""
    key, base_url = str(settings.openai_api_key), settings.openai_base_url.rstrip("/")
    if not key and base_url == OPENAI:
        return
    outbound = Outbound(base_url, headers={"Authorization": f"Bearer {key}"} if key else {})
    register(_endpoint(settings), Painter(outbound, is_openai=base_url == OPENAI))


def _endpoint(settings: Settings) -> Endpoint:
    resolutions = tuple(
        value for value in RESOLUTIONS if value in settings.openai_image_resolutions
    )
    if not resolutions:
        raise SettingsError(
            "GATEWAY_OPENAI_IMAGE_RESOLUTIONS is not right: one or more of 1K, 2K, 4K. "
            "Example: GATEWAY_OPENAI_IMAGE_RESOLUTIONS=1K,2K"
        )
    try:
        price_units = usdc(settings.openai_image_price)
    except ValueError as error:
        raise SettingsError(
            f"GATEWAY_OPENAI_IMAGE_PRICE: {error}. Example: GATEWAY_OPENAI_IMAGE_PRICE=0.08"
        ) from None
    return Endpoint(
        slug="openai-image",
        title=f"Image by {settings.openai_image_model}",
        description="Makes a picture from a description in words.",
        model=settings.openai_image_model,
        provider="openai",
        capability="text-to-image",
        price_units=price_units,
        aspect_ratio=Choice(values=tuple(dict.fromkeys(a for a, _ in SIZES)), default="1:1"),
        output_format=Choice(values=("png", "jpg", "webp"), default="png"),
        resolution=Choice(values=resolutions, default=resolutions[0]),
        timeout_s=TIMEOUT_S + _DOWNLOADS_S,
    )
