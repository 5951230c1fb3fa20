"""While the database refuses writes, alarms are sent from memory; they are written afterwards."""

from gateway.errors import DiskFull, StoreUnavailable
from gateway_operator.sql import alarm_messages, alarms
from tests.plugins.gateway_operator.unit.alarm_desk import condition

FULL = condition("check", subject="disk", title="Nothing is sold: disk")


async def past(desk) -> list[str]:
    return [one.key for one in await desk.store.sum(alarms.past_alarms, 10)]


def break_writes(desk, error: Exception) -> None:
    """Make the database refuse writes; the result ends this."""
    write = desk.store.write

    async def refuse(*_):
        raise error

    def mend() -> None:
        desk.full = None
        desk.store.write = write

    desk.full, desk.store.write = error, refuse
    return mend


def break_reads(desk) -> None:
    async def refuse(*_):
        raise StoreUnavailable

    desk.store.sum = refuse


async def test_a_full_disk_is_told_once_from_memory_and_its_end_by_the_database(desk):
    mend = break_writes(desk, DiskFull())
    desk.holds = [FULL]
    for _ in range(6):
        await desk.step()
    assert desk.inbox.events == [("raised", "check:disk", "urgent")]
    assert desk.heartbeat_url.beats == 0
    mend()
    desk.holds = []
    await desk.step()
    assert [one.key for one in await desk.open()] == ["check:disk"]
    await desk.step(301)
    assert desk.inbox.events[1:] == [("ended", "check:disk", "urgent")]
    assert (await desk.open(), await past(desk)) == ([], ["check:disk"])
    assert desk.heartbeat_url.beats > 0


async def test_the_heartbeat_is_silent_from_the_first_write_that_fails_on(desk):
    await desk.step(61)
    beats = desk.heartbeat_url.beats
    assert beats == 1
    mend = break_writes(desk, DiskFull())
    for _ in range(3):
        await desk.step(61)
    assert desk.heartbeat_url.beats == beats
    mend()
    await desk.step(61)
    assert desk.heartbeat_url.beats == beats + 1


async def test_a_disk_that_is_full_by_its_numbers_alone_stops_the_heartbeat_at_once(desk):
    await desk.step(61)
    beats = desk.heartbeat_url.beats
    desk.holds = [FULL]
    await desk.step(1)
    await desk.step(61)
    assert desk.heartbeat_url.beats == beats


async def test_a_channel_that_fails_meanwhile_is_asked_again(desk):
    break_writes(desk, DiskFull())
    desk.inbox.problem = "Status 500."
    desk.holds = [FULL]
    await desk.step()
    await desk.step()
    desk.inbox.problem = None
    for _ in range(4):
        await desk.step()
    assert desk.inbox.events == [("raised", "check:disk", "urgent")]


async def test_what_was_stored_before_is_told_once(desk):
    desk.inbox.problem = "Status 500."
    desk.holds = [condition()]
    await desk.step()
    mend = break_writes(desk, DiskFull())
    desk.inbox.problem = None
    for _ in range(5):
        await desk.step()
    assert desk.inbox.events == [("raised", "margin:picture", "urgent")]
    mend()
    await desk.step()
    assert len(desk.inbox.received) == 1
    assert await desk.store.sum(alarm_messages.due, desk.at + 10**6, 10) == []


async def test_a_database_that_cannot_be_read_either_is_told(desk):
    break_writes(desk, StoreUnavailable())
    break_reads(desk)
    desk.holds = [condition("check", subject="database")]
    for _ in range(3):
        await desk.step()
    assert desk.inbox.events == [("raised", "check:database", "urgent")]


async def test_where_no_node_can_write_each_one_tells(desk):
    desk.is_leader = False
    desk.holds = [FULL]
    for _ in range(3):
        await desk.step()
    assert desk.inbox.received == []
    mend = break_writes(desk, DiskFull())
    for _ in range(3):
        await desk.step()
    assert desk.inbox.events == [("raised", "check:disk", "urgent")]
    # The leader writes it down.
    mend()
    desk.holds = []
    await desk.step()
    assert await desk.open() == []


async def test_each_message_from_memory_has_an_id_of_its_own(desk):
    break_writes(desk, DiskFull())
    desk.holds = [condition(subject=str(number)) for number in range(3)]
    await desk.step()
    assert len(set(desk.inbox.ids)) == 3
    # No stored message has such an id.
    assert all(number < 0 for number in desk.inbox.ids)
