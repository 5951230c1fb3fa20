"""What outlives a process, and what its clients get from it."""

import sqlite3
from collections.abc import Awaitable, Callable

import attrs

from gateway.payments import Accepted
from gateway.running.gateway import Gateway
from tests.proof.simulation.bank import Bank
from tests.proof.simulation.chain import SimulatedChain
from tests.proof.simulation.market import Terms
from tests.proof.simulation.relay import Relay
from tests.proof.simulation.vendor import Vendor
from tests.proof.simulation.world import World

Ask = Callable[[Gateway], Awaitable[Accepted]]
"""A request: what a route would do with the parts of the running gateway."""


@attrs.frozen(kw_only=True)
class Answer:
    """What a client got; status 0 is no answer at all."""

    status: int
    code: str | None = None
    task_id: str | None = None


NOTHING = Answer(status=0)


@attrs.define
class Ground:
    """What outlives a process: the world, the chain, the database, the relay, the bank."""

    world: World
    chain: SimulatedChain
    db: sqlite3.Connection
    relay: Relay
    terms: Terms
    bank: Bank | None = None  # of the vouchers that the shop takes
    vendor: Vendor = attrs.field(factory=Vendor)
    surprises: list[str] = attrs.field(factory=list)  # errors nobody raises on purpose
