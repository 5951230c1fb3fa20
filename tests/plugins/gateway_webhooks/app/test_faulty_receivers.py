"""Receivers that fail, hang, redirect, disconnect, refuse for good, or answer without end."""

import asyncio

import pytest
import structlog

from tests.plugins.gateway_webhooks.app.receiver import receiving, status
from tests.plugins.gateway_webhooks.app.shop import opened

SECRET = "SECRET-IN-THE-ADDRESS"


def hook(receiver, host="127.0.0.1") -> str:
    return f"http://{host}:{receiver.port}/hook?token={SECRET}"


async def closing(writer) -> None:
    writer.close()


@pytest.mark.parametrize(
    "fault",
    [status(500), status(404), status(199), b"nonsense\r\n\r\n", closing],
    ids=["500", "404", "199", "nonsense", "closes"],
)
async def test_what_was_not_taken_is_sent_again_under_the_same_id(tmp_path, receiver, fault):
    receiver.answers = [fault, status(200)]
    async with opened(tmp_path) as shop:
        task_id = await shop.ended(hook(receiver))
        first, second = await receiver.got(2)
        await shop.until_left(0)
        assert first.id == second.id
        assert first.body == second.body
        for one in (first, second):
            assert one.headers["webhook-timestamp"] == str(int(shop.at))
            assert one.event["data"]["taskId"] == task_id
    assert len(receiver.delivered) == 2


async def test_a_receiver_that_says_gone_is_not_asked_again(tmp_path, receiver):
    receiver.answers = [status(410)]
    async with opened(tmp_path) as shop:
        await shop.ended(hook(receiver))
        await shop.until_left(0)
    assert len(receiver.delivered) == 1


async def test_an_event_is_given_up_after_six_attempts(tmp_path, receiver):
    receiver.answers = [status(503)] * 10
    async with opened(tmp_path) as shop:
        await shop.ended(hook(receiver))
        await shop.until_left(0)
    assert len(receiver.delivered) == 6
    assert len({one.id for one in receiver.delivered}) == 1


async def test_the_pauses_between_attempts_grow(tmp_path, receiver):
    receiver.answers = [status(500)] * 5
    pauses = (5.0, 300.0, 1_800.0, 7_200.0, 18_000.0)
    async with opened(tmp_path, pauses_s=pauses) as shop:
        await shop.ended(hook(receiver))
        for number, pause_s in enumerate(pauses, start=1):
            await receiver.got(number)

            async def is_written(failures=number):
                return [event.failures for event in await shop.left()] == [failures]

            await shop.until(is_written)
            assert await shop.deliveries.queue.next_due(now=shop.at) == shop.at + pause_s
            shop.at += pause_s
        await shop.until_left(0)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(tmp_path, receiver, code):
    async with receiving() as elsewhere, opened(tmp_path) as shop:
        receiver.answers = [status(code, f"Location: {hook(elsewhere)}"), status(204)]
        await shop.ended(hook(receiver))
        await receiver.got(2)
        await shop.until_left(0)
        assert elsewhere.delivered == []


async def test_a_receiver_that_hangs_is_left_and_asked_again(tmp_path, receiver):
    receiver.answers = [None, status(204)]
    async with opened(tmp_path, timeout_s=0.3) as shop:
        await shop.ended(hook(receiver))
        await shop.until_left(0)
    assert len(receiver.delivered) >= 2


async def test_nothing_of_the_answers_body_is_awaited(tmp_path, receiver):
    cut_off = asyncio.Event()

    async def endless(writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 1_000_000)
                await writer.drain()
        except ConnectionError:
            cut_off.set()

    receiver.answers = [endless]
    async with opened(tmp_path) as shop:
        await shop.ended(hook(receiver))
        await shop.until_left(0)
        async with asyncio.timeout(60):
            await cut_off.wait()
    assert len(receiver.delivered) == 1


async def test_a_receiver_that_is_down_is_asked_again_when_it_is_up(tmp_path):
    async with receiving() as gone:
        url = hook(gone)
    async with opened(tmp_path, pauses_s=(5.0,) * 5) as shop:
        await shop.ended(url)

        async def has_failed():
            return [event.failures for event in await shop.left()] == [1]

        await shop.until(has_failed)


# -- a receiver delays no other


async def test_a_host_that_hangs_takes_two_places_and_delays_no_other(tmp_path, receiver):
    receiver.answers = [None] * 100
    async with receiving() as other, opened(tmp_path, drain_s=0.0) as shop:
        for number in range(20):
            await shop.ended(hook(receiver), payer=f"0x{number:040x}")
        await receiver.got(2)
        await shop.ended(hook(other, host="localhost"))
        await other.got(1)
        assert len(receiver.delivered) == 2


async def test_a_payer_whose_hosts_hang_takes_four_places(tmp_path, receiver):
    receiver.answers = [None] * 100
    async with receiving() as other, opened(tmp_path, drain_s=0.0) as shop:
        for number in range(20):
            shop.names.table[f"host-{number}.example"] = ["127.0.0.1"]
            await shop.ended(hook(receiver, host=f"host-{number}.example"))
        await receiver.got(4)
        await shop.ended(hook(other, host="localhost"), payer="0x" + "1" * 40)
        await other.got(1)
        assert len(receiver.delivered) == 4


async def test_a_names_server_that_does_not_answer_delays_no_other(tmp_path, receiver):
    import threading

    answered = threading.Event()

    def slow():
        answered.wait(100)
        return ["127.0.0.1"]

    try:
        async with opened(tmp_path, timeout_s=30.0, drain_s=0.0) as shop:
            for number in range(6):
                shop.names.table[f"slow-{number}.example"] = slow
                await shop.ended(f"http://slow-{number}.example/")
            await shop.ended(hook(receiver), payer="0x" + "1" * 40)
            await receiver.got(1)
            # The payer's four places, and the other payer's lookup.
            assert len(shop.names.asked) == 5
    finally:
        answered.set()


async def test_a_payer_gets_ten_events_a_minute_to_one_host(tmp_path, receiver):
    async with opened(tmp_path) as shop:
        for _ in range(12):
            await shop.ended(hook(receiver))
        await shop.until_left(2)
        # An event of another payer is sent at once.
        await shop.ended(hook(receiver), payer="0x" + "1" * 40)
        await receiver.got(11)
        shop.at += 60
        await shop.until_left(0)
    assert len({one.id for one in receiver.delivered}) == len(receiver.delivered) == 13


# -- stops and restarts


async def test_what_was_not_delivered_before_a_crash_is_delivered_after_it(tmp_path, receiver):
    async with opened(tmp_path, start=False) as shop:
        task_id = await shop.ended(hook(receiver))
        (event,) = await shop.left()
    async with opened(tmp_path) as shop:
        (delivered,) = await receiver.got(1)
        await shop.until_left(0)
    assert (delivered.id, delivered.event["data"]["taskId"]) == (event.message_id, task_id)


async def test_a_stop_in_the_middle_of_an_attempt_sends_it_again_under_the_same_id(
    tmp_path, receiver
):
    receiver.answers = [None]
    async with opened(tmp_path, drain_s=0.0) as shop:
        await shop.ended(hook(receiver))
        await receiver.got(1)
    async with opened(tmp_path) as shop:
        first, second = await receiver.got(2)
        await shop.until_left(0)
    assert first.id == second.id


async def test_a_stop_waits_for_an_attempt_that_has_begun(tmp_path, receiver):
    answer = asyncio.Event()

    async def late(writer) -> None:
        await answer.wait()
        writer.write(status(204))
        await writer.drain()

    receiver.answers = [late]
    async with opened(tmp_path, drain_s=60.0) as shop:
        await shop.ended(hook(receiver))
        await receiver.got(1)
        asyncio.get_running_loop().call_later(0.05, answer.set)
        await shop.deliveries.close()
        assert await shop.left() == []


async def test_the_log_names_the_host_and_never_the_address(tmp_path, receiver):
    receiver.answers = [status(500), closing, status(410)]
    with structlog.testing.capture_logs() as lines:
        async with opened(tmp_path) as shop:
            await shop.ended(hook(receiver))
            await shop.ended("http://unknown.example/" + SECRET, payer="0x" + "1" * 40)
            await shop.until_left(0)
    about = [line for line in lines if line["event"].startswith("webhook.")]
    assert {line["host"] for line in about} == {"127.0.0.1", "unknown.example"}
    assert {"webhook.retry_scheduled", "webhook.given_up"} <= {line["event"] for line in about}
    assert SECRET not in str(lines)
