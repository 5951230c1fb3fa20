"""The operator's settings: key, URL, model and prices."""

import re

import attrs
import typed_settings as ts

from gateway import Settings, SettingsError, Traits, secret, setting, usdc
from gateway.vendors import Model, base_url, limit_or_none, model_name
from gateway_openai.sizes import LEAST_PIXELS, PRICE_FACTORS, RESOLUTIONS

OPENAI = "https://api.openai.com/v1"
# The model with the best price for its quality: a medium picture costs a quarter of gpt-image-2's.
_DEFAULT_MODEL = "gpt-image-2.5-flare"
# USDC of a picture at 1K by quality, including a long prompt. `auto` may be the best quality.
_FLARE_PRICES = {
    "low": "0.03",
    "medium": "0.04",
    "high": "0.08",
    "xhigh": "0.14",
    "max": "0.32",
    "auto": "0.32",
}
# For gpt-image-2 and unknown models. The costs of `xhigh` and `max` are unknown there, so the
# operator must set their price.
_PRICES = {"low": "0.08", "medium": "0.08", "high": "0.32", "auto": "0.32", "xhigh": "", "max": ""}
# The surcharge of an edit. A picture sent to gpt-image-2 counts as 1,536 tokens at most, according
# to a developer's measurements (community.openai.com, 2026-06), at 8 US dollars a million: 0.0123.
_SENT_PICTURE_UNITS = usdc("0.02")
_SENT_PICTURE_MICROS = 12_300
# Cost of a picture at 1K in 10⁻⁶ US dollars by model and quality. gpt-image-2: OpenAI's guide, as
# quoted by other companies (2026-05). 2.5 Flare: 196, 439, 1,756, 3,122 and 7,024 tokens (measured
# 2026-09, sanand0/blog) at 30 US dollars a million. The costs of 2K and 4K are unknown.
_COSTS = {
    "gpt-image-2": {"low": 6_000, "medium": 53_000, "high": 211_000, "auto": 211_000},
    _DEFAULT_MODEL: {
        "low": 5_880,
        "medium": 13_170,
        "high": 52_680,
        "xhigh": 93_660,
        "max": 210_720,
        "auto": 210_720,
    },
}
# The first day on which OpenAI no longer serves a model (developers.openai.com, deprecations, read
# 2026-11-26).
_RETIRES = {
    "dall-e-2": "2026-05-12",
    "dall-e-3": "2026-05-12",
    "gpt-image-1": "2026-10-23",
    "gpt-image-1-mini": "2026-12-01",
    "gpt-image-1.5": "2026-12-01",
    "gpt-image-1.5-2025-12-16": "2026-12-01",
    "chatgpt-image-latest": "2026-12-01",
}
# When these costs were last checked.
CHECKED = "2026-11-22"
# The price at another server, which has no quality levels.
_PLAIN_PRICE = "0.08"
# openai 3.54.0 documents `xhigh` and `max` for gpt-image-2.5 and later.
_NEW_QUALITIES = ("xhigh", "max")
_OLDER_MODEL = re.compile(r"gpt-image-[12](?![.\d])|gpt-image-1\.|dall-e")
# A large picture takes two minutes.
_TIMEOUT_S = 300.0


@attrs.frozen(kw_only=True)
class OpenAISettings:
    """The operator's settings for OpenAI's images API, and servers that speak it."""

    api_key: ts.SecretStr = secret(
        "Key of OpenAI, or of a server with the same images API. It puts `openai-image` on sale.",
        example="sk-...",
        on_page=True,
    )
    base_url: str = setting(
        OPENAI,
        "Address of that API. Other servers need no key.",
        example="http://127.0.0.1:8000/v1",
        # Some operators put a key into the path.
        shown=False,
    )
    image_model: str = setting(
        _DEFAULT_MODEL,
        "Model; it must accept any size whose sides divide by 16.",
        on_page=True,
    )
    image_quality: str = setting(
        "medium",
        "Quality at OpenAI, which determines your cost: `low`, `medium`, `high`, `xhigh`, `max` or "
        "`auto`. Not sent to other servers.",
        on_page=True,
    )
    image_price: str = setting(
        "",
        "USDC for one picture at 1K. Empty: for gpt-image-2.5-flare 0.03, 0.04, 0.08, 0.14, 0.32 "
        "or 0.32, by the quality; for another model 0.08, at `high` and `auto` 0.32 (`xhigh` and "
        "`max` need a price); at another server 0.08.",
        example="0.08",
        on_page=True,
    )
    image_price_2k: str = setting(
        "",
        "The same at 2K; empty: twice the price at 1K.",
        example="0.16",
        on_page=True,
    )
    image_price_4k: str = setting(
        "",
        "The same at 4K; empty: three times the price at 1K.",
        example="0.24",
        on_page=True,
    )
    image_resolutions: tuple[str, ...] = setting(
        ("1K",),
        "Resolutions on sale, of 1K, 2K and 4K.",
        example="1K,2K,4K",
        on_page=True,
    )
    edit_model: str = setting(
        "",
        "Model that edits pictures; it puts `openai-image-edit` on sale. Empty: at OpenAI the "
        "model above, at another server none.",
        example="gpt-image-2",
        on_page=True,
    )
    edit_price: str = setting(
        "",
        "USDC for one edit. Empty: 0.02 more than a picture at 1K.",
        example="0.10",
        on_page=True,
    )
    max_concurrency: int = setting(0, "Concurrent pictures; 0: as many as workers.", on_page=True)


def model_on_sale(section: OpenAISettings, settings: Settings) -> Model:
    """Return the model on sale; raises `SettingsError` for an invalid setting."""
    model = model_name(settings, "openai-image", section.image_model, name="openai_image_model")
    resolutions = tuple(value for value in RESOLUTIONS if value in section.image_resolutions)
    if not resolutions:
        raise SettingsError(
            "GATEWAY_OPENAI_IMAGE_RESOLUTIONS is not right: one or more of 1K, 2K, 4K. "
            "Example: GATEWAY_OPENAI_IMAGE_RESOLUTIONS=1K,2K"
        )
    _check_quality(section, model)
    prices = _prices(section, model)
    return Model(
        slug="openai-image",
        id=model,
        title=f"Image by {section.image_model}",
        price=prices[resolutions[0]],
        prices={resolution: prices[resolution] for resolution in resolutions[1:]},
        resolutions=resolutions,
        least_pixels=LEAST_PIXELS,
        cost_micros=_cost_micros(section, model),
        timeout_s=_TIMEOUT_S,
        retires=_retires(section, model),
    )


def edit_on_sale(section: OpenAISettings, settings: Settings) -> Model | None:
    """Return the model that edits pictures, if any; raises `SettingsError`."""
    named = section.edit_model.strip() or (section.image_model if is_openai(section) else "")
    if not named:
        return None
    model = model_name(settings, "openai-image-edit", named, name="openai_edit_model")
    _check_quality(section, model)
    if section.edit_price:
        price = section.edit_price
        _checked_price("openai_edit_price", price)
    else:
        price = f"{(usdc(_prices(section, model)['1K']) + _SENT_PICTURE_UNITS) / 1_000_000:f}"
    cost = _cost_micros(section, model)
    return Model(
        slug="openai-image-edit",
        id=model,
        title=f"Image edit by {named}",
        description="Changes a picture as a prompt says.",
        price=price,
        cost_micros=None if cost is None else cost + _SENT_PICTURE_MICROS,
        timeout_s=_TIMEOUT_S,
        retires=_retires(section, model),
    )


def is_openai(section: OpenAISettings) -> bool:
    """Whether the server is OpenAI itself."""
    return base_url(section.base_url, name="openai_base_url") == OPENAI


def traits(section: OpenAISettings) -> Traits:
    """Return the provider's limits; submits to this API are not idempotent."""
    return Traits(
        max_concurrency=limit_or_none(section.max_concurrency, name="openai_max_concurrency")
    )


def _cost_micros(section: OpenAISettings, model: str) -> int | None:
    """Return the cost of a picture at 1K, if known."""
    known = _COSTS.get(model, {}) if is_openai(section) else {}
    return known.get(section.image_quality)


def _retires(section: OpenAISettings, model: str) -> str | None:
    """Return the day of retirement, known only for OpenAI's own models."""
    return _RETIRES.get(model) if is_openai(section) else None


def _check_quality(section: OpenAISettings, model: str) -> None:
    """Check that the quality exists, and that the model supports it."""
    quality = section.image_quality
    if quality not in _PRICES:
        raise SettingsError(
            f"GATEWAY_OPENAI_IMAGE_QUALITY is not right: one of {', '.join(_PRICES)}. "
            "Example: GATEWAY_OPENAI_IMAGE_QUALITY=medium"
        )
    if quality in _NEW_QUALITIES and is_openai(section) and _OLDER_MODEL.match(model):
        raise SettingsError(
            f"GATEWAY_OPENAI_IMAGE_QUALITY is not right: {model} does not take {quality}. "
            "Example: GATEWAY_OPENAI_IMAGE_QUALITY=high"
        )


def _prices(section: OpenAISettings, model: str) -> dict[str, str]:
    """Return prices; the defaults are multiples of the price at 1K."""
    table = _FLARE_PRICES if model == _DEFAULT_MODEL else _PRICES
    usual = table[section.image_quality] if is_openai(section) else _PLAIN_PRICE
    price = section.image_price or usual
    if not price:
        raise SettingsError(
            f"GATEWAY_OPENAI_IMAGE_PRICE is missing: the quality {section.image_quality} has no "
            "usual price. Example: GATEWAY_OPENAI_IMAGE_PRICE=0.60"
        )
    first = _checked_price("openai_image_price", price)
    given = {"2K": section.image_price_2k, "4K": section.image_price_4k}
    prices = {"1K": price}
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
