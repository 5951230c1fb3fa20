"""Prices by unit: any reported measure, and any prompt, has a bounded price or is refused."""

import attrs
from hypothesis import strategies as st

from gateway import (
    KILOCHARACTERS,
    SECOND,
    Attachment,
    Capability,
    FileKind,
    GenerationRequest,
    InSandbox,
    InvalidInput,
    Limit,
    UnitPrice,
)
from gateway.errors import ExecutionError
from gateway.sandbox.kinds import _check_limits, _read_measures
from gateway_testing.facts import ENDPOINT
from tests.proof.fuzz.hostile import mostly, mutated, spoiled

_SOUND = FileKind(
    name="recording",
    endings=(".wav",),
    read=InSandbox(function="child:read"),
    measures=("seconds", "channels"),
    limits=(Limit(measure="seconds", least=0.2, most=600),),
)
_HEARD = attrs.evolve(
    ENDPOINT,
    capability="sound-to-text",
    declared=Capability(name="sound-to-text", files=(_SOUND,)),
    unit_price=UnitPrice(unit=SECOND, price_units=1_000, step=5, most=600),
)
SPOKEN = attrs.evolve(
    ENDPOINT, unit_price=UnitPrice(unit=KILOCHARACTERS, price_units=30_000, step=2, most=20)
)
_FILE = Attachment(name="a.wav", data=b"sound")

_REPORTS = [
    {"seconds": 2.5, "channels": 1},
    {"seconds": 600.0004, "channels": 2},
    {"seconds": 1e308, "channels": 0.0},
    {"seconds": 4.9999999999, "channels": 10**30},
]
reports = mostly(spoiled(st.sampled_from(_REPORTS).flatmap(mutated)), st.binary(max_size=40))


def read_report(report: bytes) -> str:
    """Price a file by a report that a decoder may have made up."""
    try:
        measured = _read_measures(_SOUND, report)
        _check_limits(_SOUND, measured)
    except (ExecutionError, InvalidInput):
        return "refused"
    request = GenerationRequest(prompt="", attachment=_FILE, measured=measured)
    check_price(_HEARD, request)
    return "accepted"


def check_price(endpoint, request: GenerationRequest) -> None:
    """Check that a price is a whole number within the offer, and rises with the amount."""
    price = endpoint.unit_price
    measured = request.measure(price.unit)
    asked = endpoint.price_of(request)
    amount = price.amount_of(measured)
    assert type(asked) is int
    assert asked == max(endpoint.price_units, amount * price.price_units)
    assert amount % price.step == 0
    # The step that is paid for, and none more; measures are rounded to a thousandth.
    assert measured / price.unit.size - 0.001 <= amount
    assert amount < measured / price.unit.size + price.step + 0.001
