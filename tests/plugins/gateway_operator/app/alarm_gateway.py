"""A gateway whose alarms run only when a test checks them, and a condition on demand."""

import contextlib

from gateway_operator.state import Operator
from tests.conftest import running
from tests.operator_history import Sale, add_sale

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@contextlib.asynccontextmanager
async def alarmed(settings, provider, **options):
    async with running(settings, provider, **options) as gateway:
        await gateway.silence_background()
        yield gateway


async def fail_often(gateway, count: int = 8) -> None:
    """Let an endpoint fail until the operator is needed."""
    now = gateway.services.now()
    for number in range(count):
        sale = Sale(at=now - 100 + number, status="failed")
        await gateway.services.store.write(add_sale, sale)


async def check_alarms(gateway, clock=None, after_s: float = 0.0) -> None:
    """Let time pass, check once, and wait until all due messages are sent."""
    if clock is not None:
        clock.offset_s += after_s
    await gateway.services.find(Operator).alarms.step()
    await gateway.services.find(Operator).alarms.sender.finish()
