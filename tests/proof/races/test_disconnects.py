"""A client that disconnects during its purchase: it ends as if the client had stayed.

The handler is cancelled at each of its awaits, and at each call of the chain.
"""

import asyncio
import contextlib
import functools
import itertools

import pytest

from tests.proof.races.shop import FLOWS

# -- the handler is cancelled at each of its awaits, one after the other


class LeavesAt:
    """Awaits a coroutine, and cancels its own task at the n-th suspension."""

    def __init__(self, coroutine, moment):
        self._coroutine = coroutine
        self._moment = moment
        self._waits = 0

    def __await__(self):
        inner = self._coroutine.__await__()
        step = functools.partial(inner.send, None)
        while True:
            try:
                waited_for = step()
            except StopIteration as end:
                return end.value
            self._waits += 1
            if self._waits == self._moment:
                asyncio.current_task().cancel()
            try:
                yield waited_for
                step = functools.partial(inner.send, None)
            except BaseException as error:  # noqa: BLE001 - the coroutine's own business
                step = functools.partial(inner.throw, error)


async def stayed_until(shop, purchase, moment) -> bool:
    """Run a handler whose client leaves at a moment; returns whether it ended before that."""
    app, about = shop.gateway.app, {"json": purchase.body, "headers": purchase.headers}
    async with app.test_request_context(purchase.path, method="POST", **about):
        handler = asyncio.ensure_future(_result_of(LeavesAt(app.full_dispatch_request(), moment)))
        (outcome,) = await asyncio.gather(handler, return_exceptions=True)
    if isinstance(outcome, asyncio.CancelledError):
        return False
    assert outcome.status_code == 200
    return True


async def _result_of(awaitable):
    return await awaitable


@FLOWS
async def test_a_handler_cancelled_at_any_await_ends_as_one_sale(shop, flow):
    for moment in itertools.count(1):
        async with shop.one_sale() as answers:
            purchase = flow(shop)
            stayed = await stayed_until(shop, purchase, moment)
            answers.append(await shop.ask(purchase))
        if stayed:
            break
    assert moment > 3


# -- the handler is cancelled at each call of the chain, the settlement's among them


@contextlib.contextmanager
def at_call(chain, number, leave, *, answered):
    """Call `leave` just before, or after, the chain handles the n-th call from now."""
    server, calls = chain._server._http, itertools.count(1)
    work, loop = server.answer, asyncio.get_running_loop()

    def answer(body):
        is_now = next(calls) == number
        if is_now and not answered:
            loop.call_soon_threadsafe(leave)
        reply = work(body)
        if is_now and answered:
            loop.call_soon_threadsafe(leave)
        return reply

    server.answer = answer
    try:
        yield
    finally:
        server.answer = work


@FLOWS
@pytest.mark.parametrize("answered", [False, True], ids=["asked", "answered"])
async def test_a_handler_cancelled_at_any_call_of_the_chain_ends_as_one_sale(shop, flow, answered):
    for number in itertools.count(1):
        async with shop.one_sale() as answers:
            purchase = flow(shop)
            handler = asyncio.ensure_future(stayed_until(shop, purchase, None))
            with at_call(shop.chain, number, handler.cancel, answered=answered):
                (stayed,) = await asyncio.gather(handler, return_exceptions=True)
            answers.append(await shop.ask(purchase))
        if stayed is True:
            break
    assert number > 2
