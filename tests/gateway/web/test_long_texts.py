"""A task with a long text: complete by GET, without it by HEAD, and never whole in memory."""

import asyncio
import json
from types import SimpleNamespace

from gateway import Result
from gateway.store.long_texts import PART_CHARS, SHORT_CHARS
from gateway.web.front.answers import send_answer
from gateway.web.routes.tasks import answer_task
from tests.cases import each
from tests.gateway.web.asgi_calls import Asked, ask
from tests.gateway.web.orders import FILE, order, show
from tests.gateway.web.test_event_stream import STREAM, Listener, asked
from tests.patience import skip_time

HOST = (b"host", b"gateway.test")
# This header sends it to Quart's routes.
TO_QUART = ((b"expect", b"100-continue"), HOST)
# Characters that JSON escapes, or that take several bytes.
_ODD = 'a"\\\n\0\x1fé漢😀</script>'


async def finished(gateway, provider, payer, text: str) -> str:
    """Return the id of a task with this text."""
    provider.script = [Result(text=text)]
    task_id = await order(gateway, payer, slug="paper", **FILE)
    assert (await gateway.wait(task_id))["status"] == "completed"
    return task_id


def path_of(task_id: str) -> bytes:
    return f"/api/task/{task_id}".encode()


@each("chars", [SHORT_CHARS, SHORT_CHARS + 1, 2 * PART_CHARS, 3 * PART_CHARS + 17])
async def test_a_text_of_any_length_is_shown_whole(gateway, provider, payer, chars):
    text = (_ODD * chars)[:chars]
    task_id = await finished(gateway, provider, payer, text)
    shown = await show(gateway, task_id)
    assert shown["result"]["text"] == text
    for headers in ((HOST,), TO_QUART):
        answer = await ask(gateway.app, Asked(path=path_of(task_id), headers=headers))
        assert json.loads(answer.body) == shown
        assert answer.headers["content-length"] == [str(len(answer.body))]
    (event,) = await Listener(gateway.app, asked(task_id, STREAM)).ended()
    assert event["data"] == shown


async def test_a_head_request_has_the_length_of_the_get_and_reads_no_text(
    gateway, provider, payer, monkeypatch
):
    task_id = await finished(gateway, provider, payer, "x" * 1_000_000)
    whole = await ask(gateway.app, Asked(path=path_of(task_id)))

    async def text_part(*_):
        raise AssertionError("A HEAD request needs no text.")

    monkeypatch.setattr(gateway.services.store, "text_part", text_part)
    head = await ask(gateway.app, Asked(method="HEAD", path=path_of(task_id)))
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == [str(len(whole.body))]


@each("chars", [100_000, 10_000_000])
async def test_the_row_that_a_poll_reads_holds_no_long_text(gateway, provider, payer, chars):
    task_id = await finished(gateway, provider, payer, "x" * chars)
    task = await gateway.services.store.task(task_id)
    assert len(repr(task)) + len(task.result.text or "") < SHORT_CHARS


async def test_a_client_that_reads_slowly_is_given_one_piece_at_a_time(gateway, provider, payer):
    task_id = await finished(gateway, provider, payer, "x" * 1_000_000)
    taken = []

    async def send(message):
        taken.append(len(message.get("body", b"")))

    request = Asked(path=path_of(task_id))
    await gateway.app(request.scope(), _nothing_more, send)
    assert sum(taken) > 1_000_000
    assert max(taken) <= 6 * PART_CHARS


async def _nothing_more():
    return {"type": "http.request", "body": b"", "more_body": False}


async def test_a_client_that_reads_slowly_all_the_time_gets_all_of_it(gateway, provider, payer):
    """Each piece has its own timeout: the whole may take longer."""
    text = "x" * (4 * PART_CHARS)
    task_id = await finished(gateway, provider, payer, text)
    poll = SimpleNamespace(part=task_id, address="peer", query=lambda _, default: default)
    answer = await answer_task(gateway.services, poll)
    read = []

    async def send(message):
        await asyncio.sleep(0)
        skip_time(40)
        read.append(message.get("body", b""))

    await send_answer(answer, (), (), {}, send, 60.0)
    assert json.loads(b"".join(read))["result"]["text"] == text
