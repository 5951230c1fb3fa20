"""The turns of one payer's purchases."""

import asyncio
from typing import Any

import pytest

from gateway.errors import ExecutionError
from gateway.payments.exposure import Exposure

PAYER = "0x" + "1" * 40


@pytest.fixture
def exposure(clock) -> Exposure:
    unused: Any = None  # turns read neither database nor chain
    return Exposure(store=unused, chain=unused, held_file_bytes=0, now=clock, turn_s=0.02)


async def test_a_purchase_that_comes_as_the_turn_passes_on_does_not_wait_for_ever(exposure):
    may_end, has_turn = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with exposure.turn(PAYER, "second", None):
            has_turn.set()
            await may_end.wait()

    async with exposure.turn(PAYER, "first", None):
        holding = asyncio.create_task(hold())
        await asyncio.sleep(0)
    # The second purchase has been woken, and has not run yet.
    with pytest.raises(ExecutionError):
        async with asyncio.timeout(20), exposure.turn(PAYER, "third", None):
            pass
    assert has_turn.is_set()
    may_end.set()
    await holding
    async with exposure.turn(PAYER, "fourth", None) as turn:
        assert not turn.had_to_wait
