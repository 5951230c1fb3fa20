"""The operator's settings: key, address, model and prices."""

import attrs
import typed_settings as ts

from gateway import SettingsError, Traits, secret, setting, usdc
from gateway.vendors import Model, limit_or_none
from gateway_openai.sizes import PRICE_FACTORS, RESOLUTIONS

OPENAI = "https://api.openai.com/v1"
QUALITIES = ("low", "medium", "high", "xhigh", "max", "auto")
# The time-out of one attempt; a large picture takes two minutes.
_TIMEOUT_S = 300.0


@attrs.frozen(kw_only=True)
class OpenAISettings:
    """The operator's settings for OpenAI's images API, and servers that speak it."""

    api_key: ts.SecretStr = secret(
        "Key of OpenAI, or of a server with the same images API. It puts `openai-image` on sale.",
        example="sk-...",
    )
    base_url: str = setting(
        OPENAI,
        "Address of that API. Another than OpenAI's own is on sale without a key, too.",
        example="http://127.0.0.1:8000/v1",
        # Some operators put a key into the path.
        shown=False,
    )
    image_model: str = setting(
        "gpt-image-2", "Model that is asked; it must take any size whose sides divide by 16."
    )
    image_quality: str = setting(
        "medium",
        "Quality that OpenAI is asked for: `low`, `medium`, `high`, `xhigh`, `max` or `auto`. It "
        "decides what a picture costs you. Other servers are not sent it.",
    )
    image_price: str = setting("0.08", "USDC for one picture at 1K; see what it costs you.")
    image_price_2k: str = setting(
        "", "USDC for one picture at 2K; empty: twice the price at 1K.", example="0.16"
    )
    image_price_4k: str = setting(
        "", "USDC for one picture at 4K; empty: three times the price at 1K.", example="0.24"
    )
    image_resolutions: tuple[str, ...] = setting(
        ("1K",), "Resolutions on sale, of 1K, 2K and 4K.", example="1K,2K,4K"
    )
    max_concurrency: int = setting(
        0, "Pictures that are asked for at the same time; 0: as many as there are workers."
    )


def model_on_sale(section: OpenAISettings) -> Model:
    """Return the model on sale; raises `SettingsError` for a setting that cannot be right."""
    resolutions = tuple(value for value in RESOLUTIONS if value in section.image_resolutions)
    if not resolutions:
        raise SettingsError(
            "GATEWAY_OPENAI_IMAGE_RESOLUTIONS is not right: one or more of 1K, 2K, 4K. "
            "Example: GATEWAY_OPENAI_IMAGE_RESOLUTIONS=1K,2K"
        )
    if section.image_quality not in QUALITIES:
        raise SettingsError(
            f"GATEWAY_OPENAI_IMAGE_QUALITY is not right: one of {', '.join(QUALITIES)}. "
            "Example: GATEWAY_OPENAI_IMAGE_QUALITY=medium"
        )
    prices = _prices(section)
    return Model(
        slug="openai-image",
        id=section.image_model,
        title=f"Image by {section.image_model}",
        price=prices[resolutions[0]],
        prices={resolution: prices[resolution] for resolution in resolutions[1:]},
        resolutions=resolutions,
        timeout_s=_TIMEOUT_S,
    )


def traits(section: OpenAISettings) -> Traits:
    """Return the provider's limits; submits of this API are not idempotent."""
    return Traits(
        max_concurrency=limit_or_none(section.max_concurrency, name="openai_max_concurrency")
    )


def _prices(section: OpenAISettings) -> dict[str, str]:
    """Return USDC by resolution: the operator's price, or a multiple of the price at 1K."""
    first = _checked_price("openai_image_price", section.image_price)
    given = {"2K": section.image_price_2k, "4K": section.image_price_4k}
    prices = {"1K": section.image_price}
    for resolution, text in given.items():
        prices[resolution] = text or f"{first * PRICE_FACTORS[resolution] / 1_000_000:f}"
        _checked_price(f"openai_image_price_{resolution.lower()}", prices[resolution])
    return prices


def _checked_price(name: str, text: str) -> int:
    try:
        return usdc(text)
    except ValueError as error:
        name = f"GATEWAY_{name.upper()}"
        raise SettingsError(f"{name}: {error}. Example: {name}=0.08") from None
