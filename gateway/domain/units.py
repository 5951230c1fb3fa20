"""Amounts of money, and units of prices: a page, a second, 1,000 characters or a megapixel."""

import math
from decimal import Decimal, InvalidOperation
from typing import Literal

import attrs

USDC_DECIMALS = 6
# Measures are rounded to these decimals, so that a file has one price at every door.
_DECIMALS = 3


def usdc(amount: str) -> int:
    """Convert a decimal USDC amount to units of 10⁻⁶ USDC: `usdc("0.02") == 20_000`.

    Raises `ValueError` if the amount is not positive or has more than 6 decimals.
    """
    try:
        units = Decimal(amount).scaleb(USDC_DECIMALS)
    except InvalidOperation:
        raise ValueError(f"{amount!r} is not a USDC amount such as 0.02") from None
    if not units.is_finite() or units <= 0 or units != units.to_integral_value():
        raise ValueError(f"{amount!r} is not a positive USDC amount of at most 6 decimals")
    return int(units)


def dollars(amount: str) -> int:
    """Convert a cost in US dollars to units of 10⁻⁶ dollars: `dollars("0.04") == 40_000`.

    Unlike a price, a cost may be 0. Raises `ValueError` for a negative amount, or more than 6
    decimals.
    """
    try:
        is_zero = Decimal(amount) == 0
    except InvalidOperation:
        raise ValueError(f"{amount!r} is not an amount of US dollars such as 0.04") from None
    try:
        return 0 if is_zero else usdc(amount)
    except ValueError:
        raise ValueError(
            f"{amount!r} is not an amount of US dollars of at most 6 decimals"
        ) from None


@attrs.frozen(kw_only=True)
class Unit:
    """What a price counts, before payment."""

    # In sentences: "each second", "20 seconds".
    name: str
    plural: str
    # The measure of the file, such as "seconds"; "characters" are those of the prompt.
    measure: str
    # How much of the measure is one unit: 1,000 for 1,000 characters.
    size: int = 1
    of: Literal["file", "prompt"] = "file"


PAGE = Unit(name="page", plural="pages", measure="pages")
SECOND = Unit(name="second", plural="seconds", measure="seconds")
KILOCHARACTERS = Unit(
    name="1,000 characters",
    plural="thousand characters",
    measure="characters",
    size=1000,
    of="prompt",
)
MEGAPIXEL = Unit(name="megapixel", plural="megapixels", measure="pixels", size=10**6)


@attrs.frozen(kw_only=True)
class UnitPrice:
    """A price for each unit. `Endpoint.price_units` is then the minimum of a request."""

    unit: Unit
    # 10⁻⁶ USDC for one unit.
    price_units: int
    # Units that are sold together: an amount is rounded up to a multiple.
    step: int = 1
    # The most units of a request; more is refused before payment.
    most: int
    # The operator's cost of one unit, in 10⁻⁶ US dollars.
    cost_micros: int | None = None

    def amount_of(self, measured: float) -> int:
        """Return the units that a measure is sold as, a multiple of the step."""
        parts = round(measured, _DECIMALS) / (self.unit.size * self.step)
        # Division may end just above a whole number.
        return math.ceil(round(parts, 9)) * self.step

    def price_of(self, measured: float) -> int:
        """Return the price of a measure, in units of 10⁻⁶ USDC."""
        return self.amount_of(measured) * self.price_units

    @property
    def highest(self) -> int:
        """The price of the largest request, in units of 10⁻⁶ USDC."""
        return -(-self.most // self.step) * self.step * self.price_units
