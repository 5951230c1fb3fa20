"""One process of the gateway, from its start to kill -9 or a graceful stop.

`gateway.app` itself builds it; only chain, database thread, outputs and clock are replaced. After
death these seams raise, so none of its code acts any more.
"""

import asyncio
import contextlib
import contextvars
from types import SimpleNamespace
from typing import Any

from gateway import app as production
from gateway.contracts import MethodPayment, PluginContext
from gateway.errors import GatewayError, PaymentRequired
from gateway.running.gateway import Gateway
from gateway.running.timing import Timing
from gateway.settings import Settings
from gateway.telemetry.redaction import Redactor
from tests.proof.simulation import market
from tests.proof.simulation.database import SimStore
from tests.proof.simulation.ground import NOTHING, Answer, Ask, Ground
from tests.proof.simulation.loop import OWNER
from tests.proof.simulation.rpc import FaultyRpc

_IN_FLIGHT_S = 5.0  # the web server waits that long for its handlers when told to stop


async def _try_nothing(settings: Settings) -> None:
    """Stand for the trial of changed settings, which no history has."""


class Dead(BaseException):
    """This process is dead."""


class Life:
    def __init__(self, ground: Ground, number: int, opened: asyncio.Event) -> None:
        self.ground = ground
        self.world = ground.world
        self.relay = ground.relay
        self.number = number
        self.is_dead = False
        self._opened = opened
        self.skew_s = ground.world.dice.choice((0.0, 0.0, 0.0, -2.0, 2.0))
        self.services: Gateway | None = None
        self._context = contextvars.copy_context()
        self._context.run(OWNER.set, self)
        self._waiting: dict[asyncio.Future[Answer], asyncio.Task[None]] = {}
        self._stop = asyncio.Event()
        self.ended = self.world.loop.create_future()
        self._spawn(self._live(), "life")

    def _spawn(self, coroutine: Any, name: str) -> asyncio.Task[Any]:
        context = self._context.copy()
        return self.world.loop.create_task(coroutine, name=name, context=context)

    # -- seams

    def check(self) -> None:
        if self.is_dead:
            raise Dead

    def now(self) -> float:
        self.check()
        return self.world.now() + self.skew_s

    async def hop(self) -> None:
        """Switch to another thread and back."""
        self.check()
        await asyncio.sleep(0)
        self.check()

    async def pause(self) -> None:
        """One-way network latency."""
        self.check()
        world = self.world
        if world.strikes(world.odds.late, "slow answer"):
            await asyncio.sleep(world.dice.uniform(0.5, 3.0))
            return self.check()
        chance = world.dice.random()
        if chance < 0.3:
            await asyncio.sleep(chance / 3)
        elif chance < 0.65:
            await asyncio.sleep(0)
        return self.check()

    async def crash_point(self, where: str) -> None:
        """Die here, by chance."""
        self.check()
        if self.world.strikes(self.world.odds.crash, f"killed: {where}"):
            self.world.loop.after_steps(0, self.kill)
            await self.world.loop.create_future()

    def check_paid(self, task_id: str) -> None:
        """The provider is called for paid tasks only."""
        row = self.ground.db.execute(
            "SELECT p.state FROM tasks t JOIN payments p ON p.id = t.payment_id WHERE t.id = ?",
            (task_id,),
        ).fetchone()
        if row["state"] != "settled":
            self.ground.surprises.append(f"GENERATED_UNPAID {task_id} is {row['state']}")

    def check_settling(self, asked: MethodPayment) -> None:
        """A method is called only after T2 of its payment is durable."""
        rows = self.ground.db.execute(
            """SELECT t.id, p.state FROM claims c JOIN payments p ON p.id = c.payment_id
               JOIN tasks t ON t.payment_id = p.id WHERE c.key = ?""",
            (asked.claim,),
        )
        # A payment without any row shows at the end, as money without a task.
        for row in rows:
            if (row["id"], row["state"]) != (asked.task_id, "settling"):
                self.ground.surprises.append(f"ASKED_EARLY {asked.claim} is {row['state']}")

    # -- from start to end

    async def _live(self) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                services = await self._open(stack)
                self.world.note(f"life {self.number} serves")
                self.services = services
                self._opened.set()
                await self._stop.wait()
                await self._finish_requests()
        except Exception as error:  # noqa: BLE001 - a process that fails is a finding
            if not self.is_dead:
                self.ground.surprises.append(f"LIFE_FAILED {error!r}")
                self._opened.set()  # the history ends and tells it, also where no life ever opens
        if not self.is_dead:
            self.world.note(f"life {self.number} ended in good order")
            self._end()

    async def _open(self, stack: contextlib.AsyncExitStack) -> Gateway:
        """Do the same as `create_app`, over our seams."""
        ground, settings = self.ground, market.settings_of(self.ground.terms)
        chain = FaultyRpc(ground.chain, self.world, self)
        store = SimStore(ground.db, self)
        context = PluginContext(settings=settings, chain=chain, journal=store, now=self.now)
        manager, catalog = market.plugins(), market.catalog(self.now, ground.bank)
        settler = manager.settler(context)
        await stack.enter_async_context(store)
        site: Any = SimpleNamespace(secret_key="", extensions={})
        parts = production._Assembly(
            manager=manager,
            catalog=catalog,
            context=context,
            store=store,
            settler=settler,
            redactor=Redactor(),
            spans=manager.spans(settings),
            timing=Timing(),
            try_settings=_try_nothing,
        )
        services = await production._open_gateway(site, parts)
        services.output_store = services.workers.resources.output_store = market.NoOutputs()
        services.lifecycle.answered.set()
        await stack.enter_async_context(services.lifecycle)
        return services

    async def _finish_requests(self) -> None:
        """Do the same as the web server before the app's shutdown:

        wait, then cancel its handlers.
        """
        handlers = list(self._waiting.values())
        if handlers:
            await asyncio.wait(handlers, timeout=_IN_FLIGHT_S)
        for handler in handlers:
            handler.cancel()

    def stop(self) -> None:
        self.world.note(f"life {self.number} is told to stop")
        self._stop.set()

    @property
    def is_open(self) -> bool:
        return self.services is not None and not self._stop.is_set() and not self.is_dead

    def kill(self) -> None:
        """kill -9: nothing of this process runs from here on."""
        if self.is_dead or self.ended.done():
            return
        self.world.note(f"life {self.number} killed")
        self.world.faults["kill -9"] += 1
        self._end()

    def _end(self) -> None:
        self.is_dead = True
        if self.ground.db.in_transaction:  # of a mutant: ours are functions
            self.ground.db.execute("ROLLBACK")
        self.world.loop.forget(self)
        for answer in self._waiting:
            if not answer.done():
                answer.set_result(NOTHING)
        self._waiting.clear()
        self.ended.set_result(None)

    # -- requests

    def ask(self, what: Ask) -> asyncio.Future[Answer]:
        """Send a request; the future gets the response, or none if the process dies."""
        answer: asyncio.Future[Answer] = self.world.loop.create_future()
        handler = self._spawn(self._handle(what, answer), "request")
        self._waiting[answer] = handler
        return answer

    def hang_up(self, answer: asyncio.Future[Answer]) -> None:
        """The client disconnected; the web server cancels the handler."""
        handler = self._waiting.get(answer)
        if handler is not None and not self.is_dead:
            handler.cancel()

    async def _handle(self, what: Ask, answer: asyncio.Future[Answer]) -> None:
        result = NOTHING
        try:
            services = self.services
            assert services is not None
            accepted = await what(services)
            result = Answer(status=200, task_id=accepted.task.id)
        except PaymentRequired as refusal:
            result = Answer(status=402, code=refusal.reason)
        except GatewayError as error:
            result = Answer(status=error.status, code=error.code)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - the server's edge: a finding too
            self.ground.surprises.append(f"INTERNAL_ERROR {error!r}")
            result = Answer(status=500, code="INTERNAL_ERROR")
        finally:
            if not self.is_dead:
                self._waiting.pop(answer, None)
        if not self.is_dead and not answer.done():
            answer.set_result(result)
