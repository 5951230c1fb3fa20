"""The page of payments: open payments, how each closes, and money that bought nothing."""

from datetime import UTC, datetime

import pytest

from gateway.domain.records import LOG_LAG_S
from gateway.errors import ChainUnavailable
from gateway_operator.desk.payments import read_payments, read_unused
from gateway_operator.state import Operator
from tests.conftest import Payer, buy
from tests.operator_history import Sale, add_sale
from tests.plugins.gateway_operator.app.operator import SAME, actions_of, log_in, post, text_of

PAGE = "/admin/payments"


@pytest.fixture
async def gateway(gateway):
    await log_in(gateway)
    gateway.services.find(Operator).desk.unused.pause_s = 0.0
    return gateway


@pytest.fixture
def desk(gateway):
    return gateway.services.find(Operator).desk


async def looked(desk):
    """Transfers that bought nothing, after a new search has finished."""
    desk.unused.searched_at = None
    return await read_unused(desk, timeout_s=60.0)


def direct(tx_hash: str) -> dict:
    return {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}


async def test_an_open_payment_says_since_when_and_what_closes_it(gateway, desk, clock):
    await gateway.services.settlements._periodic.stop()
    sale = Sale(at=clock() - 300, status="processing", state="settling")
    await desk.store.write(_add_open, sale)
    (one,) = (await read_payments(desk)).open
    assert (one.shape, one.row.state) == ("warn", "settling")
    text = await text_of(await gateway.client.get(PAGE))
    assert "5 min" in text
    assert "its event closes it" in text


async def test_an_open_payment_is_wrong_only_when_every_log_counts_as_shown(gateway, desk, clock):
    await gateway.services.settlements._periodic.stop()
    await desk.store.write(_add_open, Sale(at=clock(), status="processing", state="settling"))
    (one,) = (await read_payments(desk)).open
    ends = one.row.valid_before
    closed_by = datetime.fromtimestamp(ends + LOG_LAG_S, UTC).strftime("%H:%M:%S UTC")
    found = {}
    for after_s in (-1, 1, LOG_LAG_S + 60, LOG_LAG_S + 301):
        clock.offset_s += ends + after_s - clock()
        (one,) = (await read_payments(desk)).open
        found[after_s] = (one.shape == "bad", closed_by in one.closes)
    assert list(found.values()) == [(False, False), (False, True), (False, True), (True, True)]


def _add_open(db, sale):
    """Write a sale with an unsettled payment, which only a held task may have."""
    from attrs import evolve

    return add_sale(db, evolve(sale, status="held"))


async def test_transfers_that_bought_nothing_are_listed_by_what_they_look_like(
    gateway, desk, chain, clock, payer
):
    stranger, buyer = Payer(chain), Payer(chain)
    stranger.transfer(5)
    stranger.transfer(30_000)
    await buy(gateway, buyer.header())
    buyer.transfer(20_000)
    found = {(one.sender, one.amount_units): one for one in (await looked(desk)).transfers}
    strange, known = stranger.account.address.lower(), buyer.account.address.lower()
    assert set(found) == {(strange, 5), (strange, 30_000), (known, 20_000)}
    assert found[strange, 5].why == "paid too little"
    assert found[strange, 30_000].why == "not used yet"
    assert found[known, 20_000].why == "paid twice"
    assert found[known, 20_000].task_id is not None
    clock.offset_s += 2 * 86_400
    later = {one.amount_units: one.why for one in (await looked(desk)).transfers}
    assert later[30_000] == "paid to nobody"


async def test_a_transfer_from_before_a_restore_is_not_said_to_be_paid_twice(
    gateway, desk, clock, payer
):
    await buy(gateway, payer.header())
    payer.transfer(20_000)
    await gateway.services.store._write(_begin_anew, clock() + 3600)
    clock.offset_s += 7200
    whys = [one.why for one in (await looked(desk)).transfers]
    assert whys == ["older than this database"]


def _begin_anew(db, at):
    """Write the rows of a restore."""
    db.execute("UPDATE meta SET value = ? WHERE key = 'born_at'", (str(at),))


async def test_a_transfer_that_buys_something_later_leaves_the_list(gateway, desk, payer):
    await gateway.services.payments.cutoff_block()
    tx_hash = payer.transfer(20_000)
    assert [one.tx_hash for one in (await looked(desk)).transfers] == [tx_hash]
    answer = await gateway.client.post("/api/proxy-generate", json=direct(tx_hash))
    assert answer.status_code == 200
    assert (await looked(desk)).transfers == []


async def test_a_look_is_made_once_a_minute_and_only_for_new_blocks(
    gateway, desk, monkeypatch, clock, payer
):
    asked = []
    logs = desk.chain.transfer_logs

    async def counted(wallet, *, sender, from_block, to_block):
        asked.append((from_block, to_block))
        return await logs(wallet, sender=sender, from_block=from_block, to_block=to_block)

    monkeypatch.setattr(desk.chain, "transfer_logs", counted)
    await read_unused(desk, timeout_s=60.0)
    await read_unused(desk, timeout_s=60.0)
    reads = len(asked)
    assert reads >= 1
    payer.transfer(20_000)
    clock.offset_s += 61
    found = await read_unused(desk, timeout_s=60.0)
    assert len(found.transfers) == 1
    assert asked[reads][0] == asked[reads - 1][1] + 1


async def test_where_the_chain_is_silent_the_last_look_is_shown_with_its_age(
    gateway, desk, monkeypatch, clock, payer
):
    payer.transfer(20_000)
    await looked(desk)

    async def silent(*_, **__):
        raise ChainUnavailable("The chain does not answer now.")

    monkeypatch.setattr(desk.chain, "safe_head", silent)
    clock.offset_s += 180
    text = await text_of(await gateway.client.get(PAGE))
    assert "The chain does not answer now." in text
    assert "3 min ago" in text
    assert "0.02" in text


async def test_before_the_first_look_has_ended_the_page_says_so(gateway, desk, monkeypatch):
    import asyncio

    never = asyncio.Event()
    monkeypatch.setattr(desk.chain, "safe_head", never.wait)
    found = await read_unused(desk, timeout_s=0.01)
    assert (found.searched_at, list(found.transfers)) == (None, [])
    never.set()


async def test_a_transfer_is_marked_as_seen_once_for_a_reason(gateway, desk, payer):
    tx_hash = payer.transfer(30_000)
    (one,) = (await looked(desk)).transfers
    named = f"{tx_hash}:{one.log_index}"
    answer = await post(gateway, f"{PAGE}/ask", transfer=named)
    assert "0.03 USDC" in await text_of(answer)
    assert (await post(gateway, f"{PAGE}/seen", transfer=named, reason=" ")).status_code == 400
    form = {"transfer": named, "reason": "sent back by hand", "request": "same"}
    for _ in range(2):
        assert (await post(gateway, f"{PAGE}/seen", **form)).status_code == 303
    again = await post(gateway, f"{PAGE}/seen", **form | {"request": "another"})
    assert again.status_code == 409
    (row,) = await actions_of(gateway, "transfer.seen")
    assert (row.subject, row.reason) == (named, "sent back by hand")
    page = await looked(desk)
    assert page.transfers[0].mark is not None
    assert page.unseen_units == 0
    assert "sent back by hand" in await text_of(await gateway.client.get(PAGE))


async def test_no_mark_without_a_session_from_a_foreign_page_or_for_what_is_no_transfer(gateway):
    form = {"transfer": f"0x{'1' * 64}:0", "reason": "x"}
    stranger = gateway.app.test_client()
    assert (await stranger.post(f"{PAGE}/seen", form=form, headers=SAME)).status_code == 401
    foreign = {"Origin": "https://evil.example"}
    assert (
        await gateway.client.post(f"{PAGE}/seen", form=form, headers=foreign)
    ).status_code == 403
    for wrong in ("", "0x12:0", f"0x{'1' * 64}:-1", f"0x{'1' * 64}:99999999"):
        answer = await post(gateway, f"{PAGE}/seen", transfer=wrong, reason="x")
        assert answer.status_code == 400
    assert (await post(gateway, f"{PAGE}/ask", **form)).status_code == 404
    assert await actions_of(gateway, "transfer.seen") == []


async def test_a_payment_of_more_than_the_price_is_listed(gateway, desk, payer):
    answer = await gateway.client.post("/api/proxy-generate", json=direct(payer.transfer(25_000)))
    assert answer.status_code == 200
    (one,) = (await read_payments(desk)).over
    assert one.over_units == 5_000
    assert "0.005" in await text_of(await gateway.client.get(PAGE))
