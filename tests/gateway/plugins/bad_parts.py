"""Bad plugins for the fence's tests: what a part does, and a gateway that must go on."""

import asyncio
import contextlib

import attrs

from gateway import Part, hookimpl
from gateway.running.timing import Timing
from tests.conftest import buy

# Short limits, so that a hanging step costs a test little.
SOON = Timing(start_s=0.2, step_s=0.2, longest_step_s=0.2, facts_s=0.2)


@attrs.define
class Bad:
    """A plugin with one part, whose fields a test gives."""

    fields: dict

    @hookimpl
    def register_parts(self, register, gateway):
        register(Part(name="bad", **self.fields))


async def hang():
    await asyncio.Event().wait()


async def cling():
    """Hang, and ignore the first cancellation. The event loop of a test must end by the next."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()


def raising(error):
    async def fail():
        raise error

    return fail


def returning(value):
    async def answer():
        return value

    return answer


async def assert_sells(gateway, payer):
    """A price, a sale, a poll, readiness and the alarms' conditions work."""
    assert (await buy(gateway, None)).status_code == 402
    sold = await (await buy(gateway, payer.header())).get_json()
    assert (await gateway.wait(sold["taskId"]))["status"] == "completed"
    for path in ("/api/ready", "/api/health", "/llms.txt", "/.well-known/agent-manifest.json"):
        assert (await gateway.client.get(path)).status_code == 200, path
