"""A tracing plugin: its spans, and that its errors do no harm."""

import asyncio
import contextlib
import json
import sys
import types
from pathlib import Path

import pytest

from gateway import hookimpl
from gateway.errors import ContentPolicy
from gateway.web.front.answers import WHOLE_ANSWER
from gateway.web.server.serve import listen
from tests.conftest import buy, running
from tests.http_servers import SERVE

EXAMPLE = Path(__file__).parents[3] / "docs/examples/gateway-otel/src"
PROMPT = "MARKER-PROMPT-a-boat-on-a-lake"


class Recorder:
    """A plugin that keeps every finished span, with its parent."""

    def __init__(self) -> None:
        self.ended = []
        self.open = []

    @hookimpl
    def register_spans(self, register):
        register(self.span)

    @contextlib.contextmanager
    def span(self, name, about):
        self.open.append(name)
        try:
            yield
        finally:
            self.open.remove(name)
            self.ended.append((name, about))

    def named(self, name) -> list[dict]:
        return [about for found, about in self.ended if found == name]


class Broken:
    """A plugin that fails at `where`."""

    def __init__(self, where) -> None:
        self.where = where

    @hookimpl
    def register_spans(self, register):
        register(self.span)

    def span(self, name, about):
        if self.where == "open":
            raise RuntimeError("open")
        return self

    def __enter__(self):
        if self.where == "enter":
            raise RuntimeError("enter")

    def __exit__(self, *error):
        if self.where == "exit":
            raise RuntimeError("exit")
        return True


async def sold(gateway, payer) -> dict:
    answer = await buy(gateway, payer.header(), prompt=PROMPT)
    assert answer.status_code == 200
    task_id = (await answer.get_json())["taskId"]
    return await (await gateway.client.get(f"/api/task/{task_id}?wait=20")).get_json()


async def test_a_request_an_attempt_and_a_call_each_have_a_span(settings, provider, payer):
    recorder = Recorder()
    async with running(settings, provider, more=[recorder]) as gateway:
        task = await sold(gateway, payer)
        assert task["status"] == "completed"
    (bought,) = [one for one in recorder.named("request") if one["method"] == "POST"]
    assert (bought["path"], bought["status"]) == ("/api/x402", 200)
    (attempt,) = recorder.named("attempt")
    assert attempt == {
        "task": task["taskId"],
        "slug": "picture",
        "provider": "scripted",
        "payment": 1,
        "request": bought["request"],
        "attempt": 1,
    }
    assert "submit" in [call["call"] for call in recorder.named("call")]
    assert recorder.open == []
    assert PROMPT not in json.dumps(recorder.ended)
    assert payer.account.address.lower() not in json.dumps(recorder.ended)


async def test_a_failed_call_tells_the_class_of_its_error_and_not_its_text(
    settings, provider, payer
):
    recorder = Recorder()

    async def fails(request, job):
        raise ContentPolicy(f"No {request.prompt} here.")

    provider.submit = fails
    async with running(settings, provider, more=[recorder]) as gateway:
        assert (await sold(gateway, payer))["status"] == "failed"
    errors = [call["error"] for call in recorder.named("call") if "error" in call]
    assert errors == ["ContentPolicy"]
    assert PROMPT not in json.dumps(recorder.ended)


@pytest.mark.parametrize("where", ["open", "enter", "exit", "nowhere"])
async def test_a_plugin_that_fails_at_a_span_harms_nothing(settings, provider, payer, where):
    async with running(settings, provider, more=[Broken(where)]) as gateway:
        assert (await sold(gateway, payer))["status"] == "completed"
        # An error of the block is raised, whatever the span's end returns.
        assert (await gateway.client.get("/api/task/unknown")).status_code == 404


async def test_without_such_a_plugin_nothing_stands_before_the_app(settings, provider):
    async with running(settings, provider) as gateway:
        assert type(gateway.app.asgi_app).__name__ == "FastPath"
        assert all(not one.spans.openers for one in gateway.services.catalog.upstreams())


# -- over a socket, where the fast path writes whole responses without `send`


@contextlib.asynccontextmanager
async def served(app, http_server):
    """Serve an app that is already started; yields a connection to it."""
    stop = asyncio.Event()
    with listen("127.0.0.1:0") as listener:
        port = listener.getsockname()[1]
        server = asyncio.create_task(SERVE[http_server](app, listener, stop))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield reader, writer
        finally:
            writer.close()
            stop.set()
            await server


async def ask(connection, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of the response to a request."""
    reader, writer = connection
    writer.write(request)
    async with asyncio.timeout(60):
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        body = await reader.readexactly(int(headers["content-length"]))
    return int(first.split()[1]), headers, body


HEAD = b"Host: gateway.test\r\nContent-Type: application/json\r\nContent-Length: "
FAST = {
    ("/api/health", 200): b"GET /api/health HTTP/1.1\r\nHost: gateway.test\r\n\r\n",
    ("/api/task", 404): b"GET /api/task/none HTTP/1.1\r\nHost: gateway.test\r\n\r\n",
    ("/api/x402", 402): b"POST /api/x402/picture HTTP/1.1\r\n" + HEAD + b'14\r\n\r\n{"prompt":"a"}',
}


async def test_the_span_of_an_answer_that_is_written_whole_has_its_status(
    settings, provider, http_server
):
    recorder = Recorder()
    async with (
        running(settings, provider, more=[recorder]) as gateway,
        served(gateway.app, http_server) as connection,
    ):
        answers = [await ask(connection, request) for request in FAST.values()]
    logged = [(one["path"], one["status"], one["request"]) for one in recorder.named("request")]
    assert logged == [
        (path, status, headers["x-request-id"])
        for (path, status), (_, headers, _) in zip(FAST, answers, strict=True)
    ]
    assert [status for status, _, _ in answers] == [status for _, status in FAST]


@pytest.mark.parametrize("more", [[], [Recorder()]], ids=["untraced", "traced"])
async def test_the_server_keeps_what_it_offers(settings, provider, http_server, more):
    """Without such a plugin responses are written whole; with one the server's scope stays."""
    kept, whole = [], []
    async with running(settings, provider, more=more) as gateway:

        async def app(scope, receive, send) -> None:
            write = scope["extensions"][WHOLE_ANSWER]

            def write_and_note(status, *parts) -> bool:
                whole.append(status)
                return write(status, *parts)

            scope["extensions"][WHOLE_ANSWER] = write_and_note
            offered = dict(scope["extensions"])
            await gateway.app(scope, receive, send)
            kept.append(scope["extensions"] == offered)

        async with served(app, http_server) as connection:
            for (_, status), request in FAST.items():
                assert (await ask(connection, request))[0] == status
    assert kept == [True] * len(FAST)
    assert whole == ([] if more else [status for _, status in FAST])


# -- the example


class FakeSpan:
    def __init__(self, name) -> None:
        self.name, self.attributes, self.status = name, {}, None

    def set_attribute(self, name, value) -> None:
        self.attributes[name] = value

    def set_status(self, status) -> None:
        self.status = status


@pytest.fixture
def example(monkeypatch):
    """The example, with a fake of the OpenTelemetry names that it imports."""
    spans = []

    class FakeTracer:
        @contextlib.contextmanager
        def start_as_current_span(self, name):
            spans.append(FakeSpan(name))
            yield spans[-1]

    class FakeProvider:
        def add_span_processor(self, processor) -> None:
            assert processor == ("batch", "otlp")

        def get_tracer(self, name):
            return FakeTracer()

    names = {
        "opentelemetry": {
            "trace": types.SimpleNamespace(StatusCode=types.SimpleNamespace(ERROR="ERROR"))
        },
        "opentelemetry.exporter.otlp.proto.http.trace_exporter": {
            "OTLPSpanExporter": lambda: "otlp"
        },
        "opentelemetry.sdk.trace": {"TracerProvider": FakeProvider},
        "opentelemetry.sdk.trace.export": {
            "BatchSpanProcessor": lambda exporter: ("batch", exporter)
        },
    }
    for name, held in names.items():
        module = types.ModuleType(name)
        vars(module).update(held)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import gateway_otel

    yield gateway_otel, spans
    sys.modules.pop("gateway_otel", None)


async def test_the_example_sends_what_it_is_told(settings, provider, payer, example):
    plugin, spans = example
    async with running(settings, provider, more=[plugin]) as gateway:
        task = await sold(gateway, payer)
    (attempt,) = [span for span in spans if span.name == "attempt"]
    assert attempt.attributes["gateway.task"] == task["taskId"]
    assert attempt.status is None
    assert {"request", "attempt", "call"} == {span.name for span in spans}
