"""The usual pace of the chain: stored once, compared at each start, replaced after a day."""

import attrs
import pytest

from gateway.store import SqliteStore
from gateway_check.pace import check_pace
from gateway_operator.desk.chain_pace import PaceFacts, read_pace
from gateway_operator.desk.conditions import find_conditions
from gateway_operator.desk.desk import Desk
from gateway_operator.sql import chain_pace
from gateway_operator.sql.chain_pace import UsualPace
from tests.migrated_databases import put_database
from tests.plugins.gateway_operator.unit.test_conditions import FACTS
from tests.unit.payments.paced_chain import DENIM, PACES, PacedChain
from tests.unit.payments.test_nonce_events import signed_at

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S


@attrs.define
class Gateway:
    """A gateway's desk on a chain that changes from 2 s to 0.2 s at `DENIM`."""

    settings: object
    store: SqliteStore
    chain: PacedChain
    desk: Desk = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.desk = Desk(
            settings=self.settings,
            store=self.store,
            chain=self.chain,
            now=lambda: self.chain.now,
            refunds=None,
            catalog=None,
        )

    async def conditions(self, at: float) -> list[str]:
        """Return the titles of the conditions at a time."""
        self.chain.now = at
        pace = await read_pace(self.desk)
        return [one.title for one in find_conditions(attrs.evolve(FACTS, pace=pace))]

    async def row(self) -> str:
        """Return the row `pace` of `gateway check`; an error's text begins with "wrong: "."""
        try:
            return await check_pace(self.settings, self.chain)
        except ValueError as error:
            return f"wrong: {error}"


@pytest.fixture
async def gateway(settings):
    database = put_database(settings.data_dir / "gateway.db")
    chain = PacedChain(now=DENIM - 60, paces=PACES["2 s, then 0.2 s"], signed=signed_at(DENIM))
    async with SqliteStore(database) as store:
        yield Gateway(settings, store, chain)


FASTER = "A block every 0.2 s, not a block every 2 s"


async def test_a_change_is_noticed_also_after_a_restart_and_is_usual_after_a_day(gateway):
    assert await gateway.row() == "a block every 2 s"
    assert await gateway.conditions(DENIM - 60) == []
    noticed = DENIM + HOUR_S
    assert await gateway.conditions(noticed) == [FASTER]
    gateway.restart()
    assert await gateway.conditions(noticed + DAY_S - 60) == [FASTER]
    row = await gateway.row()
    assert row.startswith(
        "wrong: a block every 0.2 s, but a block every 2 s until about 2026-11-05"
    )
    assert "GATEWAY_CONFIRMATIONS, 1 now" in row
    assert await gateway.conditions(noticed + DAY_S + 600) == []
    assert await gateway.row() == "a block every 0.2 s"


async def test_check_alone_writes_nothing(gateway):
    await gateway.conditions(DENIM - 60)
    gateway.chain.now = DENIM + HOUR_S
    for _ in range(2):
        assert "but a block every 2 s before" in await gateway.row()
    assert await gateway.store.sum(chain_pace.read) == UsualPace(block_s=2.0)


async def test_while_the_pace_is_unknown_nothing_is_stored_or_noticed(gateway):
    assert await gateway.conditions(DENIM + 60) == []
    assert await gateway.store.sum(chain_pace.read) is None
    assert (await gateway.row()).startswith("not known yet")


async def test_page_views_measure_every_ten_minutes_at_most(gateway):
    for second in range(0, 600, 30):
        await gateway.conditions(DENIM - 3_600 + second)
    assert gateway.chain.calls == {"block": 3}
    await gateway.conditions(DENIM - 3_000)
    assert gateway.chain.calls == {"block": 6}


async def test_the_old_pace_again_ends_the_condition(gateway):
    note = gateway.store.write
    assert await note(chain_pace.note, 0.2, DENIM) == UsualPace(block_s=0.2)
    assert (await note(chain_pace.note, 2.0, DENIM + 60)).differs_since == DENIM + 60
    assert (await note(chain_pace.note, 2.0, DENIM + 120)).differs_since == DENIM + 60
    assert await note(chain_pace.note, 0.21, DENIM + 180) == UsualPace(block_s=0.2)
    assert (await note(chain_pace.note, 2.0, DENIM + DAY_S + 120)).block_s == 0.2
    assert await note(chain_pace.note, 2.0, DENIM + 2 * DAY_S + 120) == UsualPace(block_s=2.0)


@pytest.mark.parametrize(
    ("now_s", "usual_s", "level", "words"),
    [
        (0.2, 2.0, "warn", "they now cover 10% of the time"),
        (12.0, 2.0, "warn", "they now cover 600% of the time"),
        (0.2, 0.25, None, ""),
    ],
)
def test_a_change_of_pace_names_what_counts_blocks(now_s, usual_s, level, words):
    facts = attrs.evolve(FACTS, pace=PaceFacts(now_s=now_s, usual_s=usual_s))
    found = find_conditions(facts)
    assert [one.level for one in found] == ([level] if level else [])
    assert all(words in one.text and "GATEWAY_CONFIRMATIONS" in one.text for one in found)
