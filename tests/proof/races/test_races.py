"""Requests for the same money, fifty at once: exactly one task and one transfer."""

import pytest

from gateway.store import SqliteStore
from tests.proof.races.rounds import RACES
from tests.proof.races.shop import tally


@pytest.mark.parametrize("name", RACES)
async def test_fifty_at_once_are_one_sale(shop, name):
    for _ in range(2):
        await RACES[name](shop, 50)


async def test_a_repeat_that_looked_before_the_first_try_committed_has_its_task(shop, monkeypatch):
    """A repeated request reads twice, with the first try's commit between."""
    find, is_first = SqliteStore.find_direct, True

    async def overtaken(store, *what):
        nonlocal is_first
        found, was_first = await find(store, *what), is_first
        is_first = False
        if was_first:
            answers.append(await shop.ask(purchase))
        return found

    monkeypatch.setattr(SqliteStore, "find_direct", overtaken)
    async with shop.one_sale() as answers:
        purchase = shop.direct()
        answers.append(await shop.ask(purchase))
    assert tally(answers) == {"200": 2}
