"""USDC that moved without a record: red on the overview, in alarms and in the books."""

import attrs
import pytest
from eth_account import Account

from gateway.chain.log_ranges import LogsTooNarrow
from gateway.errors import ActionRefused
from gateway_operator.actions.transfers import mark_seen
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.books.reconcile import reconcile
from gateway_operator.books.span import read_span
from gateway_operator.desk.conditions import find_conditions
from gateway_operator.desk.facts import read_facts
from gateway_operator.movements import MovementSearch
from gateway_operator.sql.actions import insert
from gateway_operator.sql.movements import explain
from gateway_operator.sql.seen_transfers import mark
from gateway_operator.state import Operator
from tests.conftest import Payer, buy
from tests.operator_history import Sale
from tests.patience import until
from tests.plugins.gateway_operator.app.operator import RIGHT, log_in, post, text_of
from tests.plugins.gateway_operator.app.test_api import post as post_json
from tests.plugins.gateway_operator.app.test_api import token_of
from tests.plugins.gateway_operator.app.test_books import remember

PAGE = "/admin/payments"
THIEF = "0x" + "66" * 20


@pytest.fixture
def refund_key(chain):
    account = Account.create()
    chain.fund(account.address, eth_wei=10**18, usdc_units=1_000_000)
    return account


@pytest.fixture
def settings(settings, refund_key):
    return attrs.evolve(settings, refund_key=refund_key.key.hex(), refunds="manual")


@pytest.fixture
async def desk(gateway, chain):
    await gateway.silence_background()
    await log_in(gateway)
    chain.advance(2)
    found = gateway.services.find(Operator).desk
    found.movements.pause_s = found.unused.pause_s = 0.0
    found.shared.ttl_s = 0.0
    return found


async def searched(desk) -> list:
    """Search now; return the conditions of movements, without a card for any sale."""
    for search in (desk.movements, desk.unused):
        search.searched_at = None
        await search.refresh(60.0)
        assert search.problem is None
    found = find_conditions(await read_facts(desk))
    return [one for one in found if one.condition in ("unbooked", "moved_in", "restored")]


def seen_in_advance(db, tx_hash: str, log_index: int) -> None:
    actor = Actor(door="api", name="thief")
    insert(db, NewAction(actor=actor, at=1.0, action="transfer.seen", subject=tx_hash))
    mark(db, tx_hash, log_index, 1.0)


async def compare(gateway, desk):
    return await reconcile(desk, read_span(None, None, gateway.services.now()))


async def test_a_thief_of_the_refund_key_is_an_urgent_alarm(gateway, desk, chain, refund_key):
    chain.transfer_usdc(refund_key.key, THIEF, 200_000)

    async def alarmed():
        # As every 30 seconds; no page was opened.
        await gateway.services.find(Operator).alarms.step()
        listed = await gateway.client.get("/admin/api/v1/alarms")
        return [one for one in (await listed.get_json())["now"] if one["key"].startswith("unbook")]

    (alarm,) = await until(alarmed)
    assert alarm["urgency"] == "urgent"
    assert alarm["title"] == "0.20 USDC left a refund key without a record"
    assert "1 transfer" in alarm["text"]
    overview = await text_of(await gateway.client.get("/admin"))
    assert "Urgent: 0.20 USDC left a refund key without a record" in overview


async def test_a_theft_shows_before_its_block_is_safe(desk, chain, refund_key):
    # Only the block of the theft; safe blocks are older.
    assert await searched(desk) == []
    chain.transfer_usdc(refund_key.key, THIEF, 30_000)
    (theft,) = await searched(desk)
    assert (theft.level, theft.condition) == ("bad", "unbooked")
    chain.mine(200)
    assert [one.title for one in await searched(desk)] == [theft.title]


async def test_the_books_are_red_for_an_outgoing_transfer_and_amber_for_an_unused_one(
    gateway, desk, chain, payer, refund_key
):
    answer = await buy(gateway, payer.header())
    await gateway.wait((await answer.get_json())["taskId"])
    chain.mine(3)
    assert (await compare(gateway, desk)).level == "ok"
    payer.transfer(25_000)
    chain.mine(3)
    found = await compare(gateway, desk)
    assert (found.level, [one.kind for one in found.open]) == ("warn", ["unused"])
    chain.transfer_usdc(refund_key.key, THIEF, 200_000)
    chain.mine(3)
    found = await compare(gateway, desk)
    assert (found.level, [one.kind for one in found.unbooked]) == ("bad", ["unbooked"])
    today = read_span(None, None, gateway.services.now()).last
    answer = await post(gateway, f"/admin/books/compare?from={today}&to={today}")
    page = await text_of(answer)
    assert "0.20 USDC left the gateway's addresses without a record" in page
    assert "agree to the unit" not in page


async def test_a_recorded_refund_explains_one_transfer_only(gateway, desk, chain, refund_key):
    buyer = "0x" + "ab" * 20
    await remember(
        gateway,
        Sale(at=gateway.services.now(), units=20_000, status="failed", state="refunded"),
    )
    sent = chain.transfer_usdc(refund_key.key, buyer, 20_000)

    def note(db) -> None:
        db.execute(
            "UPDATE refunds SET tx_hash = ?, sender = ?, recipient = ?",
            (sent, refund_key.address.lower(), buyer),
        )

    await gateway.services.store.write(note)
    assert await searched(desk) == []
    chain.transfer_usdc(refund_key.key, buyer, 20_000)
    (twice,) = await searched(desk)
    assert twice.title == "0.02 USDC left a refund key without a record"


async def test_it_was_me_books_a_transfer(gateway, desk, chain, refund_key):
    sent = chain.transfer_usdc(refund_key.key, THIEF, 200_000)
    assert len(await searched(desk)) == 1
    (one,) = desk.movements.known
    place = f"{sent}:{one.movement.transfer.log_index}"
    assert "It was me" in await text_of(await gateway.client.get(PAGE))
    dialog = await text_of(await post(gateway, f"{PAGE}/mine", transfer=place))
    assert "somebody else has this key" in dialog
    await post(gateway, f"{PAGE}/seen", transfer=place, reason="moved to the new key")
    # At once, before the next search.
    assert [c for c in find_conditions(await read_facts(desk)) if c.condition == "unbooked"] == []
    chain.mine(3)
    found = await compare(gateway, desk)
    assert found.level == "ok"
    # The books list what only the mark explains.
    ((marked, mark),) = found.marked
    assert (marked.place, mark.reason) == (one.movement.place, "moved to the new key")


async def test_a_stolen_session_or_token_books_no_theft(gateway, desk, chain, clock, refund_key):
    clock.offset_s += 601
    headers = await token_of(gateway, "act")
    sent = chain.transfer_usdc(refund_key.key, THIEF, 200_000)
    receipt = await desk.chain.receipt(sent)
    (log,) = [one.index for one in receipt.logs]
    place, path = f"{sent}:{log}", f"/transfers/{sent}/{log}/seen"
    # Before the search knows of it, and after.
    for key in ("before", "after"):
        token = await post_json(gateway, path, headers, key, reason="x")
        session = await post(gateway, f"{PAGE}/seen", transfer=place, reason="x")
        assert (token.status_code, session.status_code) == (403, 403)
        assert [one.level for one in await searched(desk)] == ["bad"]
    dialog = await post(gateway, f"{PAGE}/mine", transfer=place)
    assert 'name="password"' in await dialog.get_data(as_text=True)
    form = {"transfer": place, "reason": "mine", "password": RIGHT}
    assert (await post(gateway, f"{PAGE}/seen", **form)).status_code == 303
    assert await searched(desk) == []


async def test_no_transfer_is_marked_before_the_chain_shows_it(gateway, desk, chain, refund_key):
    actor = Actor(door="cli", name="me")
    with pytest.raises(ActionRefused, match="shows no such transfer"):
        await mark_seen(desk, actor, "0x" + "12" * 32, 0, reason="x")
    sent = chain.transfer_usdc(refund_key.key, THIEF, 200_000)
    (log,) = [one.index for one in (await desk.chain.receipt(sent)).logs]
    # As an earlier release did, for any hash.
    await desk.store.write(seen_in_advance, sent, log)
    assert [one.level for one in await searched(desk)] == ["bad"]
    # On the machine, the shell needs no password.
    await mark_seen(desk, actor, sent, log, reason="moved")
    assert await searched(desk) == []


async def test_another_process_knows_a_theft_without_the_chain(desk, chain, clock, refund_key):
    chain.transfer_usdc(refund_key.key, THIEF, 200_000)
    chain.advance(2)
    chain.mine(200)
    assert [one.level for one in await searched(desk)] == ["bad"]
    clock.offset_s += 8 * 86_400
    restarted = MovementSearch(desk.chain, desk.store, desk.roles, desk.now)
    await restarted.load()
    assert [one.movement.kind for one in restarted.known] == ["unbooked"]
    # Its key was replaced.
    replaced = MovementSearch(desk.chain, desk.store, dict, desk.now)
    await replaced.refresh(60.0)
    assert (replaced.problem, len(replaced.known)) == (None, 1)


async def test_blocks_that_are_not_read_are_a_condition(gateway, desk, chain, clock, monkeypatch):
    async def narrow(*_, **__):
        raise LogsTooNarrow("5 blocks at once")

    def levels(found) -> list[str]:
        return [one.level for one in found if one.condition == "movements_unread"]

    await searched(desk)
    monkeypatch.setattr(desk.chain, "transfer_logs", narrow)
    seen = []
    for waited_s in (60, 61, 800):
        clock.offset_s += waited_s
        # Else the newest block may be safe, and read already.
        chain.mine(1)
        await desk.movements.refresh(60.0)
        seen.append(levels(find_conditions(await read_facts(desk))))
    assert seen == [[], ["warn"], ["bad"]]
    assert "5 blocks at once" in await text_of(await gateway.client.get("/admin"))


async def test_money_that_comes_to_a_key_is_a_condition(gateway, desk, chain, payer, refund_key):
    (settlement,) = gateway.services.settlements.addresses
    payer.transfer(50_000, to=settlement)
    payer.transfer(70_000, to=refund_key.address)
    found = {one.level: one.title for one in await searched(desk)}
    assert found == {
        "warn": "0.05 USDC came to a settlement key",
        "note": "0.07 USDC came to a refund key",
    }


async def test_dust_to_a_key_raises_no_alarm(gateway, desk, payer):
    (settlement,) = gateway.services.settlements.addresses
    payer.transfer(1, to=settlement)
    payer.transfer(2, to=settlement)
    (dust,) = await searched(desk)
    assert (dust.level, dust.raises_alarm) == ("note", False)


async def test_the_wallets_own_transfers_are_watched(gateway, desk, chain):
    """`explain` alone: no test has the wallet's key."""
    wallet, key = desk.settings.wallet_key, desk.refunds.address.lower()
    payer = Payer(chain)
    payer.transfer(20_000)
    chain.mine(1)
    (seen,) = await desk.chain.transfer_logs(wallet, from_block=0, to_block=chain.block.number)
    out = attrs.evolve(seen, sender=wallet, recipient=THIEF)
    inside = attrs.evolve(seen, sender=wallet, recipient=key, log_index=9)
    found = await desk.store.sum(explain, [seen, out, inside], desk.roles())
    assert [one.kind for one in found] == ["unused", "unbooked", "internal"]
    assert [one.is_out for one in found] == [False, True, True]


async def test_a_restored_copy_names_what_it_forgot(gateway, desk, chain, payer, refund_key):
    payer.transfer(20_000)
    chain.transfer_usdc(refund_key.key, THIEF, 20_000)
    chain.advance(5)
    at = chain.block.timestamp + 3

    def restore(db) -> None:
        db.execute("UPDATE meta SET value = ? WHERE key = 'born_at'", (str(at),))
        insert(
            db,
            NewAction(
                actor=Actor(door="cli", name="me"),
                at=at,
                action="database.restore",
                subject="copy-1",
            ),
        )

    await gateway.services.store.write(restore)
    (card,) = await searched(desk)
    assert card.level == "warn"
    assert card.title == (
        "The restored copy forgot 1 payment of 0.02 USDC and 1 outgoing transfer of 0.02 USDC"
    )
    assert "the restored copy forgot this sale" in await text_of(await gateway.client.get(PAGE))
    assert "The restored copy forgot" in await text_of(await gateway.client.get("/admin"))


async def test_an_approval_that_nothing_can_send_is_not_green(gateway, desk, chain, refund_key):
    await remember(
        gateway,
        Sale(at=gateway.services.now(), units=2_000_000, status="failed", state="refund_due"),
    )
    (case,) = await desk.store.refunds.cases()
    choice = f"{case.task_id} {case.amount_units} {case.recipient}"
    answer = await post(
        gateway, "/admin/refunds/approve", **{"refund-0": choice, "request": "r-1", "sure": "yes"}
    )
    page = await gateway.client.get(answer.headers["Location"])
    text = await text_of(page)
    assert "Approved, but nothing is sent yet: the refund key" in text
    assert "holds 1.00 USDC, and 2.00 are approved" in text
    assert "sent within half a minute" not in text
