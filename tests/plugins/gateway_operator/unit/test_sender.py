"""A channel that hangs, fails or is flooded delays and loses no message of another."""

import asyncio

from gateway.contracts.parts import Alarm
from gateway_operator.alarms.messages import write_letter
from gateway_operator.sql import alarm_messages
from tests.plugins.gateway_operator.unit.alarm_desk import NOW, Inbox, alarm_desk, condition


async def unsent(desk):
    return await desk.store.sum(alarm_messages.unsent, 0.0, 100)


async def test_a_channel_that_hangs_holds_up_no_other_channel_and_no_round(tmp_path):
    hanging = Inbox(channels=("pager",), hangs=asyncio.Event())
    async with alarm_desk(tmp_path, others=(hanging,)) as desk:
        desk.holds = [condition()]
        for _ in range(3):
            desk.at += 30
            await desk.watch.step()
        await desk.inbox.got(1)
        desk.holds.append(condition("refund_failed", subject=""))
        desk.at += 30
        await desk.watch.step()
        await desk.inbox.got(2)
        assert hanging.received == []
        hanging.hangs.set()
        await desk.watch.sender.finish()
        await desk.step()
        assert [one.key for one in hanging.received] == ["margin:picture", "refund_failed"]


async def test_a_channel_that_fails_is_asked_again_after_longer_and_longer_pauses(desk):
    desk.inbox.problem = "Status 500."
    desk.holds = [condition()]
    await desk.step()
    attempts = []
    for _ in range(12):
        await desk.step(30)
        ((message),) = await unsent(desk)
        attempts.append(message.failures)
    # After 30, 60 and 300 seconds.
    assert attempts == [2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    assert (message.channel, message.problem) == ("inbox", "Status 500.")
    desk.inbox.problem = None
    await desk.step(900)
    assert desk.inbox.events == [("raised", "margin:picture", "urgent")]
    assert await unsent(desk) == []


async def test_what_could_not_be_told_within_a_day_is_given_up_and_stays_to_be_seen(desk):
    desk.inbox.problem = "Status 500."
    desk.holds = [condition("queue", "warn")]
    await desk.step()
    for _ in range(40):
        await desk.step(3600)
    (message,) = await unsent(desk)
    assert message.due_at is None
    assert message.problem == "Status 500."


async def test_what_was_not_told_before_a_restart_is_told_after_it(desk):
    desk.inbox.problem = "Status 500."
    desk.holds = [condition()]
    await desk.step()
    desk.inbox.problem = None
    desk.start()
    await desk.step()
    assert len(desk.inbox.received) == 1


async def test_messages_of_one_round_come_as_one(desk):
    desk.holds = [condition("failures", subject=f"picture-{number}") for number in range(15)]
    await desk.step()
    assert desk.inbox.batches == [15]
    letter = write_letter(desk.inbox.received)
    assert letter.title == "Shop: 15 messages, 15 urgent"
    assert letter.body.count("picture is sold below its cost") == 15


async def test_a_flood_is_told_every_five_minutes_only_and_completely(desk):
    for number in range(60):
        desk.holds.append(condition("failures", subject=f"picture-{number}"))
        await desk.step()
    assert 20 <= len(desk.inbox.batches) <= 26
    await desk.step(300)
    assert len(desk.inbox.received) == 60


async def test_messages_of_a_channel_that_was_taken_away_are_given_up(desk):
    desk.inbox.problem = "Status 500."
    desk.holds = [condition()]
    await desk.step()
    desk.inbox = Inbox(channels=("other",))
    desk.start()
    await desk.step()
    (message,) = await unsent(desk)
    assert message.due_at is None
    assert "no longer in the settings" in message.problem
    assert desk.inbox.received == []


async def test_a_carrier_with_a_mistake_counts_as_not_told(desk):
    class Broken(Inbox):
        async def carry(self, batches):
            raise KeyError("sk-secret")

    desk.inbox = Broken()
    desk.start()
    desk.holds = [condition()]
    await desk.step()
    (message,) = await unsent(desk)
    assert message.problem == "It failed: KeyError."


def test_a_letter_says_what_since_when_what_to_do_and_where():
    alarm = Alarm(
        event="raised",
        key="gas:0x1",
        urgency="urgent",
        title="Gas runs low: about 3 settlements left",
        text="The settlement key holds 0.000001 ETH.",
        todo="Show the address.",
        link="https://gateway.example.com/admin/system#keys",
        since=NOW,
        gateway="Shop",
    )
    letter = write_letter([alarm])
    assert letter.title == "Shop: Urgent: Gas runs low: about 3 settlements left"
    assert letter.body.splitlines() == [
        "The settlement key holds 0.000001 ETH.",
        "Since 2026-06-23 00:00 UTC.",
        "What to do: Show the address.",
        "https://gateway.example.com/admin/system#keys",
    ]


def test_a_vendors_words_call_nobody_in_a_chat():
    words = "@everyone <!channel> <@U1>: write to support@vendor.example"
    alarm = Alarm(
        event="raised",
        key="off_sale:acme",
        urgency="urgent",
        title="@here",
        text=words,
        todo="",
        link="https://gateway.example.com/admin",
        since=NOW,
        gateway="Shop",
    )
    letter = write_letter([alarm])
    assert "@here" not in letter.title
    first = letter.body.splitlines()[0]
    assert "@everyone" not in first
    assert "<!" not in first
    assert "<@" not in first
    # It reads the same, and an address is still an address.
    assert first.replace("\u200b", "") == words
    assert "support@vendor.example" in first


async def test_a_clock_that_is_put_back_silences_no_channel(desk):
    desk.inbox.problem = "Status 500."
    desk.holds = [condition()]
    await desk.step()
    desk.inbox.problem = None
    await desk.step(-86_400)
    assert desk.inbox.events == [("raised", "margin:picture", "urgent")]
