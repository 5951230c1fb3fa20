"""What was changed about an endpoint while the gateway runs, above the settings file."""

import attrs


@attrs.frozen(kw_only=True)
class EarlierPrice:
    """A price that an endpoint had a moment ago, whose 402s are still good."""

    # None: the price of the settings file.
    price_units: int | None

    # Unix seconds.
    good_until: float


@attrs.frozen(kw_only=True)
class EndpointChange:
    """What was changed about an endpoint, above the settings file."""

    # Unix seconds of the newest change, one that takes another back included.
    changed_at: float

    # Unix seconds; None: it sells.
    paused_since: float | None = None
    pause_reason: str = ""

    # None: as the settings file says.
    price_units: int | None = None
    cost_micros: int | None = None
    earlier_prices: tuple[EarlierPrice, ...] = ()
