"""The state that survives a process, and its clients' responses."""

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
"""A request: the call that a route makes on the running gateway."""


@attrs.frozen(kw_only=True)
class Answer:
    """A client's response; status 0 means none."""

    status: int
    code: str | None = None
    task_id: str | None = None


NOTHING = Answer(status=0)


@attrs.define
class Ground:
    """The state that survives a process: world, chain, database, relay, bank."""

    world: World
    chain: SimulatedChain
    db: sqlite3.Connection
    relay: Relay
    terms: Terms
    bank: Bank | None = None  # of the vouchers that the shop takes
    vendor: Vendor = attrs.field(factory=Vendor)
    surprises: list[str] = attrs.field(factory=list)  # errors nobody raises on purpose
