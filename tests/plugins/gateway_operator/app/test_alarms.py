"""Alarms are the same on the page, in JSON and in the command; mutes; the daily digest."""

import json

import attrs

from gateway_operator.desk.overview import read_overview
from gateway_operator.desk.wording import usdc
from gateway_operator.sql import alarm_messages, alarms, seen_transfers
from gateway_operator.sql.records import OperatorRecords
from gateway_operator.state import Operator
from tests.conftest import Payer
from tests.operator_history import Sale, add_sale
from tests.plugins.gateway_operator.app.alarm_gateway import alarmed, check_alarms, fail_often
from tests.plugins.gateway_operator.app.operator import SAME, actions_of, log_in, post, text_of
from tests.plugins.gateway_operator.app.test_alarm_channels import Telling
from tests.store_contract.operators import new_action

API = "/admin/api/v1/alarms"


async def test_page_json_and_command_show_the_same_alarms(gateway, run):
    await gateway.silence_background()
    await fail_often(gateway)
    await check_alarms(gateway)
    await log_in(gateway)
    page = await gateway.client.get("/admin/alarms")
    assert page.status_code == 200
    shown = await text_of(page)
    assert "picture fails: 8 of its last 8" in shown
    assert "No alarms are sent: no channel is set." in shown
    answer = await gateway.client.get(API)
    listed = await answer.get_json()
    row = next(row for row in listed["now"] if row["key"] == "failures:picture")
    assert (row["urgency"], row["title"]) == ("soon", "picture fails: 8 of its last 8")
    command = await run("alarms", "--json")
    rows = json.loads(command.output)
    assert {(one["key"], one["what"]) for one in rows} == {
        (one["key"], one["title"]) for one in listed["now"]
    }
    assert "picture fails" in (await run("alarms")).output


async def test_strangers_see_and_mute_nothing(gateway):
    assert (await gateway.client.get("/admin/alarms")).status_code == 401
    assert (await gateway.client.get(API)).status_code == 401
    assert (await post(gateway, "/admin/alarms/mute", key="x")).status_code == 401
    await log_in(gateway)
    foreign = {"Sec-Fetch-Site": "cross-site"}
    answer = await gateway.client.post("/admin/alarms/mute", form={"key": "x"}, headers=foreign)
    assert answer.status_code == 403


async def test_a_mute_holds_messages_back_until_its_time_with_a_reason(settings, provider, clock):
    plugin = Telling()
    async with alarmed(settings, provider, now=clock, more=(plugin,)) as gateway:
        await fail_often(gateway)
        # It is raised before any channel exists.
        sender = gateway.services.find(Operator).alarms.sender
        sender.carriers, carriers = (), sender.carriers
        await check_alarms(gateway)
        sender.carriers = carriers
        await log_in(gateway)
        answer = await post(
            gateway,
            "/admin/alarms/mute",
            key="failures:picture",
            length="1h",
            reason="The vendor knows.",
        )
        assert answer.status_code == 303
        (action,) = await actions_of(gateway, "alarm.mute")
        assert (action.subject, action.reason) == ("failures:picture", "The vendor knows.")
        assert action.after == {"forSeconds": 3600.0}
        await check_alarms(gateway, clock, 1800)
        assert [one.key for one in plugin.received if one.key.startswith("failures")] == []
        page = await text_of(await gateway.client.get("/admin/alarms"))
        assert "The vendor knows." in page
        await check_alarms(gateway, clock, 1801)
        assert [one.key for one in plugin.received if one.key.startswith("failures")] == [
            "failures:picture"
        ]


async def test_an_urgent_alarm_is_muted_for_a_day_at_most(gateway, run):
    await gateway.silence_background()
    await fail_often(gateway, count=20)
    await check_alarms(gateway)
    refused = await run("alarms", "mute", "failures:picture", "--for", "2d", "--reason", "known")
    assert refused.exit_code == 1
    assert "24 hours at most" in refused.output
    refused = await run("alarms", "mute", "failures:picture", "--for", "ends", "--reason", "known")
    assert refused.exit_code == 1
    taken = await run("alarms", "mute", "failures:picture", "--for", "1d", "--reason", "known")
    assert taken.output.startswith("failures:picture is muted until ")
    again = await run("alarms", "mute", "failures:picture", "--for", "0", "--reason", "fixed")
    assert again.output == "failures:picture is no longer muted.\n"


async def test_a_mute_of_what_is_not_on_or_without_a_reason_is_one_sentence(gateway, run):
    refused = await run("alarms", "mute", "gas", "--for", "1h", "--reason", "known")
    assert refused.exit_code == 1
    assert "No alarm 'gas' is on." in refused.output
    await gateway.silence_background()
    await fail_often(gateway)
    await check_alarms(gateway)
    refused = await run("alarms", "mute", "failures:picture", "--for", "1h", "--reason", " ")
    assert "Give a reason" in refused.output
    refused = await run("alarms", "mute", "failures:picture", "--for", "soon", "--reason", "x")
    assert "is no length such as 30m" in refused.output


async def test_a_mute_by_json_is_carried_out_once(gateway):
    await gateway.silence_background()
    await fail_often(gateway)
    await check_alarms(gateway)
    await log_in(gateway)
    path, headers = f"{API}/failures:picture/mute", SAME | {"Idempotency-Key": "k1"}
    for _ in range(2):
        body = {"for": "1h", "reason": "known"}
        answer = await gateway.client.post(path, json=body, headers=headers)
        assert answer.status_code == 200
        assert (await answer.get_json())["muteReason"] == "known"
    assert len(await actions_of(gateway, "alarm.mute")) == 1


def _blame_the_prompts(db) -> None:
    db.execute("UPDATE tasks SET details = 'content_policy'")


async def test_a_mute_goes_on_for_the_next_alarm_of_its_kind(gateway, clock):
    from gateway_operator.alarms.service import mute
    from gateway_operator.audit_log import Actor

    await gateway.silence_background()
    await fail_often(gateway)
    await check_alarms(gateway)
    desk = gateway.services.find(Operator).desk
    actor = Actor(door="cli", name="root")
    await mute(desk, actor, "failures:picture", for_s=7200, reason="known")
    store = gateway.services.store
    # The endpoint works for a while, then fails again.
    await store.write(_blame_the_prompts)
    await check_alarms(gateway, clock, 30)
    await check_alarms(gateway, clock, 330)
    await fail_often(gateway)
    await check_alarms(gateway, clock, 30)
    held = await store.sum(alarms.find_open, "failures", "picture")
    assert held.is_muted(clock())
    assert held.mute_reason == "known"


async def test_a_login_of_a_browser_that_is_not_known_is_a_notice(settings, provider, clock):
    plugin = Telling()
    async with alarmed(settings, provider, now=clock, more=(plugin,)) as gateway:
        await log_in(gateway)
        await check_alarms(gateway)
        (messages,) = [one for one in plugin.received if one.key.startswith("login:")]
        assert (messages.urgency, messages.event) == ("notice", "raised")
        await check_alarms(gateway, clock, 3700)
        await check_alarms(gateway, clock, 330)
        assert [one.event for one in plugin.received if one.key.startswith("login:")] == ["raised"]


async def test_the_days_digest_has_the_numbers_of_the_overview_and_comes_once(
    settings, provider, clock
):
    plugin = Telling()
    at_seven = settings.changed(digest_at="07:00")
    clock.frozen_at = 1_782_172_800.0 + 6 * 3600  # a day's 06:00 UTC
    async with alarmed(at_seven, provider, now=clock, more=(plugin,)) as gateway:
        store = gateway.services.store
        for number in range(5):
            sale = Sale(at=clock() - 3600 * number - 60, cost_micros=3_000)
            await store.write(add_sale, sale)
        await store.write(add_sale, Sale(at=clock() - 7200, cost_micros=None))
        await store.write(add_sale, Sale(at=clock() - 7200, status="failed"))
        await check_alarms(gateway)
        assert [one for one in plugin.received if one.event == "digest"] == []
        for _ in range(3):
            await check_alarms(gateway, clock, 3601)
        (digest,) = [one for one in plugin.received if one.event == "digest"]
        clock.offset_s = 3601.0
        overview = await read_overview(gateway.services.find(Operator).desk, "24h")
        money, owed = overview.money, overview.facts.owed
        assert money.sold == 7
        assert digest.text.splitlines()[:4] == [
            f"Sold: 7 sales, {usdc(money.taken_units)} USDC.",
            f"Goes back: 1 sale, {usdc(money.back_units)} USDC.",
            f"Owed now: {usdc(owed.units)} USDC in 1 refund.",
            (
                f"Kept: at most {usdc(money.kept_units)} USDC before gas; "
                "the cost of 1 result is unknown."
            ),
        ]
        assert "Needs you:" in digest.text


async def test_without_a_channel_there_is_no_digest(settings, provider, clock):
    at_seven = settings.changed(digest_at="07:00")
    clock.frozen_at = 1_782_172_800.0 + 7 * 3600 + 60
    async with alarmed(at_seven, provider, now=clock) as gateway:
        await check_alarms(gateway)
        store = gateway.services.store
        assert await store.sum(alarm_messages.newest_at, "digest") is None


async def test_a_transfer_that_paid_for_nothing_is_told_after_an_hour_until_it_is_marked(
    settings, provider, clock, chain
):
    plugin, stranger = Telling(), Payer(chain)
    stranger.transfer(30_000)
    async with alarmed(settings, provider, now=clock, more=(plugin,)) as gateway:
        search = gateway.services.find(Operator).desk.unused
        search.pause_s = 0.0
        await check_alarms(gateway)
        await search.refresh(60.0)
        (found,) = search.known
        # An hour later, by the alarms' clock and the newest block.
        search.known = [attrs.evolve(found, at=found.at - 4000)]
        await check_alarms(gateway, clock, 60)
        titles = [one.title for one in plugin.received if one.key == "unclaimed"]
        assert titles == ["1 transfer to the wallet paid for nothing"]
        place = (found.transfer.tx_hash, found.transfer.log_index)
        store = gateway.services.store
        action = new_action(action="transfer.mark", subject=place[0])
        await OperatorRecords(store).act(seen_transfers.mark, *place, clock(), action=action)
        await check_alarms(gateway, clock, 60)
        await check_alarms(gateway, clock, 330)
        events = [one.event for one in plugin.received if one.key == "unclaimed"]
        assert events == ["raised", "ended"]


async def test_markup_in_what_an_alarm_quotes_stays_text(gateway):
    await gateway.silence_background()
    await log_in(gateway)
    hostile = "<script>alert(1)</script>"
    vendor = gateway.services.catalog["picture"].upstream
    vendor.circuit.trip(f"The provider answers 401 {hostile}")
    await check_alarms(gateway)
    page = await (await gateway.client.get("/admin/alarms")).get_data(as_text=True)
    assert "&lt;script&gt;alert(1)" in page
    assert hostile not in page
