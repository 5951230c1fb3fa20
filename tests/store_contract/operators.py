"""Contract of every store for its operators: sums beside sales, and recorded actions."""

import asyncio
from typing import Any

import attrs
import pytest

from gateway.errors import ActionRefused
from gateway.store import SqlStore
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.sql.records import OperatorRecords
from gateway_testing.facts import NOW, queued

_PAGE = Actor(door="page", name="s1", address="192.0.2.1")


def new_action(**changes: Any) -> NewAction:
    """An action to record; `changes` are fields of `NewAction`."""
    action = NewAction(
        actor=_PAGE,
        at=NOW,
        action="endpoint.pause",
        subject="picture",
        reason="the vendor is down",
        before={"paused": False},
        after={"paused": True},
    )
    return attrs.evolve(action, **changes)


def _count_tasks(db: Any, at_least: int = 0) -> int:
    count: int = db.execute("SELECT count(*) FROM tasks").fetchone()[0]
    return max(count, at_least)


def _insert_meta(db: Any, key: str) -> str:
    db.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (key, "1"))
    return key


def _insert_and_fail(db: Any, key: str) -> None:
    _insert_meta(db, key)
    raise ValueError(key)


class OperatorsContract:
    """Sums and the audit log."""

    async def test_a_sum_sees_what_was_sold(self, store: SqlStore) -> None:
        assert await store.sum(_count_tasks) == 0
        await queued(store)
        assert await store.sum(_count_tasks) == 1
        assert await store.sum(_count_tasks, 7) == 7

    async def test_what_is_no_action_is_written_without_one(self, store: SqlStore) -> None:
        assert await store.read(_count_tasks, 7) == 7
        assert await store.write(_insert_meta, "a") == "a"
        assert await store.known_meta("a") == "1"
        assert await OperatorRecords(store).actions(None, 10) == []

    async def test_a_sum_changes_nothing(self, store: SqlStore) -> None:
        with pytest.raises(Exception, match=r"readonly|read-only"):
            await store.sum(_insert_meta, "written by a sum")
        assert await store.known_meta("written by a sum") is None

    async def test_sums_that_begin_at_once_are_all_answered(self, store: SqlStore) -> None:
        await queued(store)
        found = await asyncio.gather(*(store.sum(_count_tasks) for _ in range(5)))
        assert found == [1] * 5

    async def test_an_action_is_kept_as_it_was(self, store: SqlStore) -> None:
        written = new_action()
        assert await OperatorRecords(store).act(_insert_meta, "a", action=written) == "a"
        assert await store.known_meta("a") == "1"
        (kept,) = await OperatorRecords(store).actions(None, 10)
        assert attrs.asdict(kept) == {"id": kept.id, **attrs.asdict(written)}

    async def test_a_write_that_fails_leaves_no_action(self, store: SqlStore) -> None:
        with pytest.raises(ValueError, match="b"):
            await OperatorRecords(store).act(_insert_and_fail, "b", action=new_action())
        assert await store.known_meta("b") is None
        assert await OperatorRecords(store).actions(None, 10) == []

    async def test_a_repeated_request_is_carried_out_once(self, store: SqlStore) -> None:
        asked = new_action(actor=attrs.evolve(_PAGE, request="r1"))
        act = OperatorRecords(store).act
        outcomes = await asyncio.gather(
            *(act(_insert_meta, key, action=asked) for key in ("a", "b")), return_exceptions=True
        )
        (first,) = [each for each in outcomes if isinstance(each, str)]
        (second,) = [each for each in outcomes if isinstance(each, AlreadyDone)]
        (kept,) = await OperatorRecords(store).actions(None, 10)
        assert second.action == kept
        assert await store.known_meta("b" if first == "a" else "a") is None
        with pytest.raises(AlreadyDone):
            await OperatorRecords(store).note(asked)

    async def test_one_request_is_not_for_two_actions(self, store: SqlStore) -> None:
        actor = attrs.evolve(_PAGE, request="r1")
        await OperatorRecords(store).note(new_action(actor=actor))
        with pytest.raises(ActionRefused, match="another action"):
            await OperatorRecords(store).note(new_action(actor=actor, subject="document"))

    async def test_actions_are_found_by_page_subject_and_kind(self, store: SqlStore) -> None:
        for subject in ("a", "b", "c"):
            await OperatorRecords(store).note(new_action(subject=subject))
        await OperatorRecords(store).note(new_action(action="endpoint.resume", subject="a"))
        newest = await OperatorRecords(store).actions(None, 2)
        assert [one.subject for one in newest] == ["a", "c"]
        older = await OperatorRecords(store).actions(newest[-1].id, 2)
        assert [one.subject for one in older] == ["b", "a"]
        of_a = await OperatorRecords(store).actions(None, 9, subject="a")
        assert [one.action for one in of_a] == ["endpoint.resume", "endpoint.pause"]
        resumed = await OperatorRecords(store).actions(None, 9, action="endpoint.resume")
        assert [one.subject for one in resumed] == ["a"]
