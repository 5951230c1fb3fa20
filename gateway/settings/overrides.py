"""Changes of endpoints in the settings file."""

import attrs


@attrs.frozen(kw_only=True)
class EndpointOverride:
    """One table `[endpoints.<slug>]`."""

    enabled: bool = True
    # USDC, such as "0.05".
    price: str | None = None
    # Your cost of one generation in US dollars, such as "0.04".
    cost: str | None = None
    # Whether a price below the cost is meant.
    allow_loss: bool = False
    title: str | None = None
    description: str | None = None
    model: str | None = None
    # USDC by resolution, such as {"4K": "0.20"}.
    prices: dict[str, str] = attrs.field(factory=dict)
