"""A pooler that assigns sessions per transaction is refused; one in session mode is not."""

import contextlib
import itertools

import psycopg
import pytest

from gateway.errors import SettingsError
from gateway_nodes.postgres import session
from gateway_nodes.postgres.session import refuse_pooling
from gateway_nodes.postgres.store import PostgresStore
from tests.gateway.postgres.pgbouncer import PROGRAM, pgbouncer


class Client:
    """A connection that knows its session's number; `lend` switches to the next one."""

    def __init__(self, lend):
        self._lend = lend

    def execute(self, _):
        return self

    def fetchone(self):
        return (self._lend(),)


def last_used_first():
    return lambda: lambda: 1


def by_turns(sessions):
    turns = itertools.cycle(range(sessions))
    return lambda: lambda: next(turns)


def own():
    numbers = itertools.count()

    def connect():
        number = next(numbers)
        return lambda: number

    return connect


@pytest.mark.parametrize("lender", [last_used_first(), by_turns(2), by_turns(3), by_turns(7)])
def test_whichever_session_is_lent_next_it_is_noticed(monkeypatch, lender):
    with pytest.raises(SettingsError, match="transaction mode"):
        ask(monkeypatch, lender)


def test_sessions_of_ones_own_are_fine(monkeypatch):
    ask(monkeypatch, own())


def ask(monkeypatch, lender):
    raw, other = Client(lender()), Client(lender())
    monkeypatch.setattr(session, "connect", lambda *_: contextlib.nullcontext(other))
    refuse_pooling(raw, "")


needs_pgbouncer = pytest.mark.skipif(PROGRAM is None, reason="apt-get install pgbouncer")


@needs_pgbouncer
@pytest.mark.parametrize(
    ("mode", "turns", "idle"),
    [
        ("statement", False, 0),
        ("transaction", False, 0),
        ("transaction", False, 2),
        ("transaction", True, 0),
        ("transaction", True, 2),
    ],
)
async def test_pgbouncer_that_lends_sessions_is_one_sentence(database_url, mode, turns, idle):
    with pgbouncer(database_url, mode, by_turns=turns) as address:
        leave_sessions(address, idle)
        with pytest.raises(SettingsError, match="pooler in transaction mode"):
            async with PostgresStore(address):
                pass


def leave_sessions(address, number):
    """Let the pooler have `number` idle sessions, as if other nodes were running."""
    with contextlib.ExitStack() as clients:
        for _ in range(number):
            client = clients.enter_context(psycopg.connect(address))
            client.execute("SELECT 1")


@needs_pgbouncer
async def test_pgbouncer_with_a_session_a_client_keeps_what_is_sold(database_url):
    with pgbouncer(database_url, "session", by_turns=True) as address:
        async with (
            PostgresStore(address, node="a", connections=3) as one,
            PostgresStore(address, node="b", connections=3) as other,
        ):
            assert await one.meta("secret", lambda: "a") == await other.meta("secret", lambda: "b")
