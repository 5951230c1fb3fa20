"""The endpoint that a declaration offers: its fields, choices and prices."""

from gateway import (
    KILOCHARACTERS,
    MEGAPIXEL,
    SECOND,
    Choice,
    Endpoint,
    PriceStep,
    SettingsError,
    Unit,
    UnitPrice,
    usdc,
)
from gateway_http.declarations import MAKE_PICTURES, Declaration, UnitName

_FORMATS = Choice(values=("png", "jpg", "webp"), default="png")
_UNITS: dict[UnitName, Unit] = {
    "second": SECOND,
    "megapixel": MEGAPIXEL,
    "1,000 characters": KILOCHARACTERS,
}
# A server may round the sides of a picture down.
_LEAST_PART = 0.9


def make_endpoint(slug: str, about: Declaration) -> Endpoint:
    """Return the endpoint of a declaration; raises `SettingsError` for a wrong price."""
    has_size = bool({"width", "height"} & about.places)
    return Endpoint(
        slug=slug,
        title=about.title,
        description=about.description or about.title,
        model=about.model or slug,
        provider=f"http-{slug}",
        capability=about.capability,
        price_units=_amount("price", about.price),
        price_steps=_price_steps(about),
        price_per_page=_amount("price_per_page", about.price_per_page)
        if about.price_per_page
        else None,
        unit_price=_unit_price(about),
        cost_micros=_amount("cost", about.cost) if about.cost else None,
        required_fields=_required_fields(about),
        aspect_ratio=Choice(values=about.ratios, default=about.ratios[0]) if has_size else Choice(),
        resolution=_resolutions(about),
        least_pixels=_least_pixels(about) if has_size else {},
        output_format=_FORMATS if about.capability in MAKE_PICTURES else Choice(),
        file_extensions=about.files,
        max_prompt_chars=about.max_prompt_chars,
        max_pages=about.max_pages,
        timeout_s=about.timeout_s,
    )


def _required_fields(about: Declaration) -> tuple[str, ...]:
    prompt = ("prompt",) if "prompt" in about.places else ()
    return (*prompt, "fileBase64", "fileName") if about.files else prompt


def _resolutions(about: Declaration) -> Choice:
    names = tuple(about.sizes)
    return Choice(values=names, default=names[0]) if names else Choice()


def _least_pixels(about: Declaration) -> dict[str, int]:
    """Return the pixels that each resolution promises; "" is for requests without one."""
    sizes = {
        name: [about.size_of(name, ratio) for ratio in about.ratios]
        for name in (about.sizes or ("",))
    }
    return {
        name: int(min(width * height for width, height in each) * _LEAST_PART)
        for name, each in sizes.items()
    }


def _price_steps(about: Declaration) -> tuple[PriceStep, ...]:
    default = next(iter(about.sizes), None)
    unpriced = [name for name in about.sizes if name not in about.prices and name != default]
    if unpriced:
        raise SettingsError(
            f'sizes has {unpriced[0]}, which has no price of its own: prices."{unpriced[0]}" = '
            '"0.05"'
        )
    for name in about.prices:
        if name not in about.sizes or name == default:
            others = ", ".join(list(about.sizes)[1:]) or "none"
            raise SettingsError(
                f"prices.{name} is the price of none of sizes ({others}); price is that of the "
                "first"
            )
    return tuple(
        PriceStep(price_units=_amount(f"prices.{name}", price), resolution=name)
        for name, price in about.prices.items()
    )


def _unit_price(about: Declaration) -> UnitPrice | None:
    each = about.unit_price
    if each is None:
        return None
    return UnitPrice(
        unit=_UNITS[each.unit],
        price_units=_amount("unit_price.price", each.price),
        step=each.step,
        most=each.most,
        cost_micros=_amount("unit_price.cost", each.cost) if each.cost else None,
    )


def _amount(name: str, text: str) -> int:
    """Return an amount in units of 10⁻⁶; raises `SettingsError` with the key."""
    try:
        return usdc(text)
    except ValueError as error:
        raise SettingsError(f"{name}: {error}") from None
