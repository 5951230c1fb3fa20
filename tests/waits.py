"""Shorter waits of the gateways under test."""

import contextlib
from collections.abc import Iterator, Mapping

import attrs

from gateway.payments.refunds import RefundTiming
from gateway.payments.settlement import SettlementTiming
from gateway.running.gateway import Gateway
from gateway_facilitator_settler.client import TIMEOUTS_S
from gateway_facilitator_settler.settler import FacilitatorSettler, FacilitatorTiming
from gateway_operator.state import Operator

# Settlements that poll the chain often, and follow late payments soon.
FAST = SettlementTiming(poll_s=0.02, full_check_s=0.1, late_poll_s=0.05, sweep_s=0.1)


@attrs.frozen(kw_only=True)
class Waits:
    """The waits of one gateway; the rest is production's."""

    outcome_s: float = 20.0
    # How long a payment that is open at the test's end delays the gateway's shutdown.
    drain_payments_s: float = 1.0
    settlement: SettlementTiming = SettlementTiming()  # noqa: RUF009 - it is frozen
    refunds: RefundTiming = RefundTiming()  # noqa: RUF009 - it is frozen
    facilitator: FacilitatorTiming = FacilitatorTiming()  # noqa: RUF009 - it is frozen
    facilitator_calls_s: Mapping[str, float] = TIMEOUTS_S


_waits: list[Waits] = [Waits()]


@contextlib.contextmanager
def started_with(waits: Waits) -> Iterator[None]:
    """Use these waits for every gateway that starts inside this block."""
    _waits.append(waits)
    try:
        yield
    finally:
        _waits.pop()


def set_waits(services: Gateway) -> None:
    """Set the waits of a gateway that has just started."""
    waits = _waits[-1]
    # Tests run the alarms' checks themselves: they call the chain.
    if services.keeps(Operator):
        services.find(Operator).alarms.every_s = 86_400.0
    services.payments.outcome_s = waits.outcome_s
    drain_s = min(services.timing.drain_payments_s, waits.drain_payments_s)
    services.timing = attrs.evolve(services.timing, drain_payments_s=drain_s)
    services.settlements.timing = waits.settlement
    if services.refunds is not None:
        services.refunds.timing = waits.refunds
    settler = services.settlements.settler
    if isinstance(settler, FacilitatorSettler):
        settler.timing = waits.facilitator
        settler._client.timeouts_s = waits.facilitator_calls_s
