"""Concurrent writes of operators on two nodes, decided by a sum or an absent row."""

import asyncio

import attrs
import pytest

from gateway.errors import ActionRefused
from gateway_nodes.postgres import pool
from gateway_nodes.postgres.store import PostgresStore
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.logins import OperatorPasskey, OperatorToken
from gateway_operator.sql import actions, logins, passkeys, tokens, trials
from gateway_operator.sql.records import OperatorRecords
from gateway_testing.facts import NOW, kinds

_AT_ONCE = 8
# Without its lock a race is lost in the first or second round.
_ROUNDS = 4
_MUTANT_ROUNDS = 50
_HOUR_S = 3600


@pytest.fixture
async def nodes(migrated_url):
    async with (
        PostgresStore(migrated_url, node="a") as one,
        PostgresStore(migrated_url, node="b") as other,
    ):
        yield one, other


def make_action(number, at=NOW):
    actor = Actor(door="api", name=f"token-{number}", address=f"1.2.3.{number}")
    return NewAction(actor=actor, at=at, action="login.refused", subject="login")


async def insert_tokens(nodes, turn):
    """Use one token name on both nodes at once; returns how many tokens have it."""
    inserts = [
        OperatorRecords(nodes[number % 2]).act(
            *(tokens.insert, f"{turn}-{number}", f"robot-{turn}", "read", NOW, NOW + 60),
            action=make_action(number),
        )
        for number in range(_AT_ONCE)
    ]
    outcomes = kinds(await asyncio.gather(*inserts, return_exceptions=True))
    assert set(outcomes) <= {OperatorToken, ActionRefused}
    return outcomes.count(OperatorToken)


async def insert_passkeys(nodes, turn):
    """Add passkeys on both nodes at once, with room for one; returns how many were added."""
    known = len(await nodes[0].read(passkeys.list_all))
    for number in range(known, passkeys.MAX_PASSKEYS - 1):
        await nodes[0].write(passkeys.insert, make_passkey(f"first-{number}"))
    inserts = [
        OperatorRecords(nodes[number % 2]).act(
            passkeys.insert, make_passkey(f"{turn}-{number}"), action=make_action(number)
        )
        for number in range(_AT_ONCE)
    ]
    outcomes = kinds(await asyncio.gather(*inserts, return_exceptions=True))
    assert set(outcomes) <= {type(None), ActionRefused}
    for one in await nodes[0].read(passkeys.list_all):
        if not one.id.startswith("first-"):
            await nodes[0].write(passkeys.remove, one.id)
    return outcomes.count(type(None))


def make_passkey(name):
    return OperatorPasskey(id=name, name=name, public_key=b"key", sign_count=0, created_at=NOW)


async def refuse_logins(nodes, turn):
    """Refuse logins of many addresses on both nodes at once; returns the rows of the audit log."""
    at = NOW + turn * _HOUR_S
    counts = [
        nodes[number % 2].write(logins.count_refused, make_action(number, at))
        for number in range(_AT_ONCE)
    ]
    await asyncio.gather(*counts)
    rows = await nodes[0].read(actions.find, None, 999, "login", "login.refused")
    return len([row for row in rows if row.at == at])


async def begin_trials(nodes, turn):
    """Begin a generation that is no sale on both nodes at once; returns how many began."""
    at = NOW + turn * _HOUR_S
    begun = [
        OperatorRecords(nodes[number % 2]).act(
            *(trials.check_room, {"picture": 60.0}, at),
            action=attrs.evolve(make_action(number, at), action=trials.BEGUN, subject="picture"),
        )
        for number in range(_AT_ONCE)
    ]
    outcomes = kinds(await asyncio.gather(*begun, return_exceptions=True))
    assert set(outcomes) <= {type(None), ActionRefused}
    return outcomes.count(type(None))


_RACES = [insert_tokens, insert_passkeys, refuse_logins, begin_trials]


@pytest.mark.parametrize("race", _RACES)
async def test_one_of_those_that_write_at_once_passes(nodes, race):
    assert [await race(nodes, turn) for turn in range(_ROUNDS)] == [1] * _ROUNDS


@pytest.mark.parametrize("race", _RACES)
async def test_without_its_lock_more_than_one_passes(nodes, monkeypatch, race):
    monkeypatch.setattr(pool, "locks_of", lambda *_: [])
    for turn in range(_MUTANT_ROUNDS):
        if await race(nodes, turn) > 1:
            return
    pytest.fail("these races are not seen")
