"""Alarms from the first detection of a condition to its end, with a test's clock."""

import asyncio

import pytest

from gateway_operator.sql import alarm_messages, alarms
from tests.plugins.gateway_operator.unit.alarm_desk import NOW, FakeUrl, condition

DAY_S = 86_400.0


async def test_what_holds_is_told_once_with_all_that_an_operator_needs(desk):
    desk.holds = [condition()]
    for _ in range(5):
        await desk.step()
    (messages,) = desk.inbox.received
    assert (messages.event, messages.key, messages.urgency) == (
        "raised",
        "margin:picture",
        "urgent",
    )
    assert messages.title == "picture is sold below its cost"
    assert messages.text == "It costs 0.03 US dollars and is sold for 0.02 USDC."
    assert messages.todo == "Raise the price."
    assert messages.link == "https://gateway.example.com/admin/endpoints/picture/price"
    assert (messages.since, messages.gateway) == (NOW + 30, "Shop")


async def test_a_restart_tells_nothing_again_and_forgets_nothing(desk):
    desk.holds = [condition()]
    await desk.step()
    for _ in range(3):
        desk.start()
        await desk.step()
    assert len(desk.inbox.received) == 1
    desk.holds = []
    await desk.step()
    desk.start()
    await desk.step(300)
    assert [one.event for one in desk.inbox.received] == ["raised", "ended"]


async def test_an_alarm_does_not_end_while_nobody_knows_whether_its_condition_holds(desk):
    desk.holds = [condition("unbooked")]
    await desk.step()
    desk.holds = []
    # Not all blocks are read; the operator booked an earlier transfer.
    desk.watch.find_uncertain = lambda: {"unbooked": NOW - 60}
    for _ in range(3):
        await desk.step(300)
    assert len(await desk.open()) == 1
    # Booked since, or all blocks are read.
    desk.watch.find_uncertain = lambda: {"unbooked": NOW + 600}
    await desk.step(300)
    await desk.step(300)
    assert await desk.open() == []


@pytest.mark.parametrize(
    ("name", "early_s", "then_s"), [("gas", 50, 10), ("clock", 110, 10), ("queue", 110, 10)]
)
async def test_some_conditions_are_raised_only_when_they_have_held_for_a_while(
    desk, name, early_s, then_s
):
    desk.holds = [condition(name, "warn")]
    await desk.step()
    await desk.step(early_s)
    assert desk.inbox.received == []
    await desk.step(then_s)
    assert desk.inbox.events == [("raised", f"{name}:picture", "soon")]


async def test_what_is_over_before_that_leaves_no_trace(desk):
    desk.holds = [condition("gas")]
    await desk.step()
    desk.holds = []
    await desk.step()
    assert await desk.open() == []
    desk.holds = [condition("gas")]
    await desk.step(50)
    assert desk.inbox.received == []


async def test_what_becomes_urgent_is_told_once_more_when_it_has_been_for_a_while(desk):
    desk.holds = [condition("gas", "warn")]
    await desk.step()
    await desk.step(60)
    desk.holds = [condition("gas", "bad")]
    await desk.step()
    assert [one.urgency for one in desk.inbox.received] == ["soon"]
    await desk.step(60)
    # Changes back and forth are not reported.
    for level in ("warn", "bad", "warn", "bad"):
        desk.holds = [condition("gas", level)]
        await desk.step(90)
    assert [one.urgency for one in desk.inbox.received] == ["soon", "urgent"]


async def test_what_is_urgent_is_told_again_each_day_and_nothing_else_is(desk):
    desk.holds = [condition(), condition("queue", "warn")]
    await desk.step()
    await desk.step(120)
    count = len(desk.inbox.received)
    await desk.step(DAY_S - 160)
    assert len(desk.inbox.received) == count == 2
    await desk.step(60)
    await desk.step()
    assert desk.inbox.events[2:] == [("again", "margin:picture", "urgent")]


async def test_it_ends_after_five_minutes_of_calm(desk):
    desk.holds = [condition()]
    await desk.step()
    desk.holds = []
    await desk.step()
    await desk.step(290)
    assert len(desk.inbox.received) == 1
    desk.holds = [condition()]
    await desk.step()
    desk.holds = []
    await desk.step()
    await desk.step(310)
    assert [one.event for one in desk.inbox.received] == ["raised", "ended"]
    assert desk.inbox.received[1].ended_at == desk.at - 310
    assert await desk.open() == []
    (past,) = await desk.store.sum(alarms.past_alarms, 10)
    assert (past.key, past.ended_at) == ("margin:picture", desk.at)


async def test_a_notice_is_told_and_its_end_is_not(desk):
    desk.holds = [condition("login", "note")]
    await desk.step()
    desk.holds = []
    await desk.step()
    await desk.step(300)
    assert [one.event for one in desk.inbox.received] == ["raised"]


async def test_a_secret_in_a_vendors_words_is_not_told(desk):
    desk.holds = [condition(text="Wrong key sk-secret.", title="sk-secret is off sale")]
    await desk.step()
    (messages,) = desk.inbox.received
    assert (messages.title, messages.text) == ("… is off sale", "Wrong key ….")


async def test_without_a_channel_nothing_counts_as_told(desk, tmp_path):
    inbox, desk.inbox = desk.inbox, None
    desk.start()
    desk.holds = [condition()]
    await desk.step()
    (held,) = await desk.open()
    assert held.raised_at is not None
    assert held.told_at is None
    desk.inbox = inbox
    desk.start()
    await desk.step()
    assert [one.event for one in inbox.received] == ["raised"]


async def test_a_look_that_fails_ends_nothing_and_the_next_one_goes_on(desk):
    desk.holds = [condition()]
    await desk.step()
    desk.holds = None
    await desk.step(400)
    desk.holds = [condition()]
    await desk.step()
    assert len(desk.inbox.received) == 1
    assert len(await desk.open()) == 1


async def test_rows_of_more_than_half_a_year_ago_go(desk):
    desk.holds = [condition()]
    await desk.step()
    desk.holds = []
    await desk.step()
    await desk.step(300)
    await desk.step(200 * DAY_S)
    assert await desk.store.sum(alarms.past_alarms, 10) == []
    assert await desk.store.sum(alarm_messages.newest_at, "raised") is None


async def test_the_heartbeat_is_silent_while_something_urgent_is_on(desk):
    desk.holds = [condition("queue", "warn")]
    await desk.step()
    await desk.step(60)
    await desk.step(10)
    assert desk.heartbeat_url.beats == 2
    desk.holds = [condition()]
    await desk.step(60)
    await desk.step(60)
    assert desk.heartbeat_url.beats == 2
    # The operator knows of a muted alarm.
    (held,) = [one for one in await desk.open() if one.condition == "margin"]
    await desk.store.write(alarms.set_mute, held.id, desk.at + 600, "known")
    await desk.step(60)
    assert desk.heartbeat_url.beats == 3


async def test_an_alarm_that_becomes_urgent_is_pending_until_it_is_sent(desk):
    desk.holds = [condition("gas", "warn")]
    await desk.step()
    await desk.step(100)
    assert [one.urgency for one in desk.inbox.received] == ["soon"]
    assert await desk.watch.find_pending() == []
    desk.holds = [condition("gas", "bad")]
    await desk.step(3_600)
    assert await desk.watch.find_pending() == ["alarms"]
    await desk.step(70)
    assert [one.urgency for one in desk.inbox.received] == ["soon", "urgent"]
    assert await desk.watch.find_pending() == []


@pytest.mark.parametrize("reason", ["urgent", "full", "follower", "unknown", ""])
async def test_a_sleep_pauses_no_silence_that_is_an_alarm(desk, reason):
    desk.watch.heartbeat.pause_address = monitor = FakeUrl()
    desk.holds = {"urgent": [condition()], "unknown": None}.get(reason, [])
    await desk.step()
    if reason == "full":
        desk.full = OSError("full")
        await desk.step()
    desk.is_leader = reason != "follower"
    await desk.watch.sleep()
    assert monitor.beats == (0 if reason else 1)


@pytest.mark.parametrize("pauses", [True, False])
async def test_a_start_makes_a_paused_monitor_count_before_conditions_are_known(desk, pauses):
    desk.holds = None
    desk.watch.heartbeat.pause_address = FakeUrl() if pauses else None
    running = asyncio.create_task(desk.watch.run())
    await asyncio.sleep(0.05)
    running.cancel()
    # Elsewhere, a crash loop must not look alive.
    assert desk.heartbeat_url.beats == (1 if pauses else 0)


async def test_the_heartbeat_is_silent_when_nothing_can_be_known(desk):
    desk.holds = None
    await desk.step()
    assert desk.heartbeat_url.beats == 0
    desk.holds = []
    await desk.step()
    assert desk.heartbeat_url.beats == 1
    desk.holds = None
    await desk.step(400)
    assert desk.heartbeat_url.beats == 1


async def test_a_heartbeat_that_is_not_heard_is_known_until_it_is(desk):
    desk.heartbeat_url.is_down = True
    await desk.step()
    assert desk.watch.heartbeat.problem == "Status 500."
    desk.heartbeat_url.is_down = False
    await desk.step(60)
    assert desk.watch.heartbeat.problem is None
    assert desk.watch.heartbeat.answered_at == desk.at
