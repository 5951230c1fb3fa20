"""docs/faults.md holds: every call to the chain, failing in every way, ends as its cell states."""

from collections.abc import Iterator
from zlib import crc32

import pytest

from tests.proof.faults import tables
from tests.proof.faults.cases import ENDS, RUNS, run_case
from tests.proof.faults.proxy import FAULTS
from tests.proof.faults.scene import Case, Scene, patience

_ENDPOINTS = {"one endpoint": 1, "a second endpoint that works": 2}
_RUNS = {
    "the gateway submits": "own",
    "somebody else submitted": "foreign",
    "the payer has no money": "poor",
    "the transfer is mined": "direct",
    "the transfer waits to be mined": "waiting",
}
_TABLES = [table for table in tables.tables() if table.chapter.partition(", ")[2] in _ENDPOINTS]


_OF_THE_SWEEP = {
    "eth_getTransactionCount",
    # Of the check for obstacles, once a minute.
    "eth_getBlockByNumber",
    "eth_getBalance",
    "eth_maxPriorityFeePerGas",
    "eth_call paused",
    "eth_call isBlacklisted",
}


class Stage:
    """The scenes in use; a scene is replaced after a case has spoiled it."""

    def __init__(self) -> None:
        self._scenes: dict[int, Scene] = {}

    def scene(self, endpoints: int) -> Scene:
        if endpoints not in self._scenes:
            self._scenes[endpoints] = Scene(endpoints=endpoints)
        return self._scenes[endpoints]

    def drop(self, endpoints: int) -> None:
        self._scenes.pop(endpoints).close()

    def close(self) -> None:
        for endpoints in list(self._scenes):
            self.drop(endpoints)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with patience():
        opened = Stage()
        yield opened
        opened.close()


# The short form plays each fault at each call once, in alternating tables; `make faults` plays all
# cells.
def _is_short(table: tables.Table, call: str, fault: str) -> bool:
    having = [one for one in _TABLES if fault in one.rows.get(call, {})]
    return having[crc32(f"{call} {fault}".encode()) % len(having)] == table


def _cells() -> list:
    return [
        pytest.param(
            *(table, call, fault, end),
            id=f"{table.chapter} {table.run}: {call} {fault}",
            marks=[] if _is_short(table, call, fault) else pytest.mark.full,
        )
        for table in _TABLES
        for call, fault, end in table.cells
    ]


# Made only after another call has failed, so it has no row of its own.
_AFTER_FAULTS = {"eth_getBlockReceipts"}


@pytest.mark.parametrize(("table", "call", "fault", "end"), _cells())
def test_a_call_that_fails_ends_as_the_table_says(stage, table, call, fault, end):
    endpoints = _ENDPOINTS[table.chapter.partition(", ")[2]]
    scene = stage.scene(endpoints)
    case = Case(run=_RUNS[table.run], call=call, fault=fault)
    try:
        assert scene.run(run_case(scene, case, end)) == end
        made = {name for proxy in scene.proxies for name in proxy.seen}
        assert not made - _known(table) - _AFTER_FAULTS, (
            "the gateway makes calls that the tables do not have"
        )
    except BaseException:
        stage.drop(endpoints)
        raise


def _known(table: tables.Table) -> set[str]:
    """Return the calls in a chapter's tables, and those of the sweep between purchases."""
    chapter = [other.rows for other in _TABLES if other.chapter == table.chapter]
    return {call for rows in chapter for call in rows} | _OF_THE_SWEEP


def test_the_page_has_a_table_for_every_run_with_one_endpoint_and_with_two():
    runs = {(_RUNS[table.run], table.chapter.partition(", ")[2]) for table in _TABLES}
    assert runs == {(run, endpoints) for run in RUNS for endpoints in _ENDPOINTS}


def test_the_tables_speak_the_words_that_the_page_explains():
    assert tables.words("The ends") == set(ENDS)
    assert tables.words("The faults") == set(FAULTS) | {"stale"}
    for table in _TABLES:
        assert {end for _, _, end in table.cells} <= set(ENDS)
        assert {fault for _, fault, _ in table.cells} <= set(FAULTS) | {"stale"}


def test_the_tables_of_one_run_have_the_same_cells():
    for run in RUNS:
        alone, spare = (
            {(call, fault) for call, fault, _ in table.cells}
            for table in _TABLES
            if _RUNS[table.run] == run
        )
        assert alone == spare
