"""The providers' HTTP client: its requests, refusals, and errors without a response."""

import asyncio
import contextlib
import gzip

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from gateway import (
    AccountProblem,
    Outbound,
    SubmitUncertain,
    Transient,
)
from gateway.outputs.downloads import renew_transports
from tests.patience import until

SECRET = "sk-never-to-be-seen"


@pytest.fixture
def site():
    with HTTPServer(threaded=True) as server:
        yield server


@contextlib.asynccontextmanager
async def opened(url, **options):
    options.setdefault("headers", {"Authorization": f"Bearer {SECRET}"})
    outbound = Outbound(url, **options)
    try:
        yield outbound
    finally:
        await outbound.close()


@contextlib.asynccontextmanager
async def scripted(behave):
    """Serve raw connections with `behave(reader, writer)`."""

    conversations = []

    async def connected(reader, writer):
        conversations.append(asyncio.current_task())
        try:
            await behave(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        if conversations:
            await asyncio.wait(conversations, timeout=20)


async def read_request(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            await reader.readexactly(int(line.split(b":")[1]))
    return head


async def test_an_answer_has_status_headers_body_and_json(site):
    seen = []

    def answer(request):
        seen.append((request.headers["Authorization"], request.json))
        return Response('{"ok": true}', 418, {"X-Mark": "1"})

    site.expect_request("/v1/make", method="POST").respond_with_handler(answer)
    async with opened(site.url_for("/v1/")) as outbound:
        got = await outbound.request("POST", "/make", json={"a": 1})
    assert (got.status, got.headers["x-mark"], got.json()) == (418, "1", {"ok": True})
    assert seen == [(f"Bearer {SECRET}", {"a": 1})]
    assert SECRET not in repr(outbound)


async def test_connections_are_kept_and_cookies_are_not():
    heads, connections = [], []

    async def behave(reader, writer):
        connections.append(writer)
        while True:
            heads.append(await read_request(reader))
            writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: buyer=1\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()

    async with scripted(behave) as url, opened(url) as outbound:
        for _ in range(3):
            await outbound.request("GET", "/")
    assert (len(connections), len(heads)) == (1, 3)
    assert not any(b"cookie" in head.lower() for head in heads)


async def test_after_a_standstill_later_requests_open_new_connections():
    """A request in progress ends on its own connection; a kept one is not used again."""
    connections, heads = [], []
    may_answer = asyncio.Event()

    async def behave(reader, writer):
        connections.append(writer)
        while True:
            head = await read_request(reader)
            heads.append(head)
            if b"/slow" in head:
                await may_answer.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()

    async with scripted(behave) as url, opened(url) as outbound:
        await outbound.request("GET", "/")
        slow = asyncio.create_task(outbound.request("POST", "/slow"))
        await until(lambda: len(heads) == 2)
        await renew_transports()
        await outbound.request("GET", "/")
        may_answer.set()
        assert (await slow).status == 200
        await outbound.request("GET", "/")
        assert len(connections) == 2
        # The old one was closed after its last request.
        await until(connections[0].transport.is_closing)


async def test_proxies_of_the_environment_are_not_asked(site, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    site.expect_request("/").respond_with_data("here")
    async with opened(site.url_for("/")) as outbound:
        assert (await outbound.request("GET", "/")).body == b"here"


async def test_a_redirect_is_an_answer_and_is_not_followed(site):
    site.expect_request("/").respond_with_data("", 302, {"Location": site.url_for("/secret")})
    async with opened(site.url_for("/")) as outbound:
        got = await outbound.request("GET", "/")
    assert got.status == 302
    assert len(site.log) == 1
    with pytest.raises(AccountProblem):
        got.check()


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "where",
    [
        *("@evil.example/", ".evil.example/", "//evil.example/", "evil", "", "https://[", "/\0"),
        *("http://127.0.0.1:9@evil.example/", "http://127.0.0.1:99/", "http://127.0.0.1:9evil/"),
    ],
)
async def test_a_path_cannot_name_another_host(method, where):
    async with opened("http://127.0.0.1:9") as outbound:
        with pytest.raises(Transient):
            await outbound.request(method, where)


async def test_an_address_that_only_begins_like_the_base_hears_no_key(site):
    with HTTPServer(threaded=True) as stranger:
        stranger.expect_request("/").respond_with_data("{}")
        base = f"http://127.0.0.1:{site.port}"
        async with opened(base) as outbound:
            with pytest.raises(Transient, match="not plain https"):
                await outbound.request("GET", f"{base}@127.0.0.1:{stranger.port}/")
        assert stranger.log == []


@pytest.mark.parametrize("where", ["/jobs/1?a=b", "{base}/jobs/1?a=b"])
async def test_an_address_below_the_base_goes_to_the_api_with_its_key(site, where):
    """A server of the operator's own may be plain http and on a private network."""
    seen = []

    def answer(request):
        seen.append((request.headers["Authorization"], request.full_path))
        return Response("{}")

    site.expect_request("/v1/jobs/1").respond_with_handler(answer)
    base = site.url_for("/v1")
    async with opened(base) as outbound:
        await outbound.request("GET", where.format(base=base))
    assert seen == [(f"Bearer {SECRET}", "/v1/jobs/1?a=b")]


async def test_the_base_itself_may_be_asked(site):
    seen = []

    def answer(request):
        seen.append(request.full_path)
        return Response("{}")

    site.expect_request("/ask").respond_with_handler(answer)
    base = site.url_for("/ask")
    async with opened(base) as outbound:
        await outbound.request("GET", base)
        await outbound.request("GET", f"{base}?b=1")
    assert [path.rstrip("?") for path in seen] == ["/ask", "/ask?b=1"]


async def test_a_file_is_sent_as_a_form(site):
    seen = []

    def answer(request):
        file = request.files["files"]
        seen.append((file.filename, file.mimetype, file.read(), request.form["mode"]))
        return Response("{}")

    site.expect_request("/convert", method="POST").respond_with_handler(answer)
    files = {"files": ("a b.pdf", b"%PDF \0\xff", "application/pdf"), "mode": (None, b"md", None)}
    async with opened(site.url_for("/")) as outbound:
        got = await outbound.request("POST", "/convert", files=files)
    assert got.status == 200
    assert seen == [("a b.pdf", "application/pdf", b"%PDF \0\xff", "md")]


async def test_headers_of_one_request_are_not_the_next_ones(site):
    seen = []

    def answer(request):
        seen.append([request.headers.get(name) for name in ("Cancel-After", "Authorization")])
        return Response("{}")

    site.expect_request("/").respond_with_handler(answer)
    async with opened(site.url_for("/")) as outbound:
        mine = {"Cancel-After": "5m", "Authorization": "other"}
        await outbound.request("POST", "/", json={}, headers=mine)
        await outbound.request("POST", "/", json={})
    assert seen == [["5m", "other"], [None, f"Bearer {SECRET}"]]


# -- no response


async def test_what_never_went_out_may_be_tried_again():
    async with scripted(lambda reader, writer: asyncio.sleep(0)) as url:
        pass  # nobody listens any more
    async with opened(url) as outbound:
        with pytest.raises(Transient):
            await outbound.request("POST", "/", json={})


async def hangs_up(reader, writer):
    await read_request(reader)


async def stays_silent(reader, writer):
    await read_request(reader)
    await reader.read()


async def stops_in_the_middle(reader, writer):
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()


async def talks_nonsense(reader, writer):
    await read_request(reader)
    writer.write(b"SSH-2.0-hello\r\n")
    await writer.drain()


@pytest.mark.parametrize("behave", [hangs_up, stays_silent, stops_in_the_middle, talks_nonsense])
async def test_what_went_out_and_was_not_answered_is_uncertain(behave):
    calls = []

    async def counted(reader, writer):
        calls.append(1)
        await behave(reader, writer)

    async with scripted(counted) as url, opened(url) as outbound:
        with pytest.raises(SubmitUncertain) as raised:
            await outbound.request("POST", "/", json={"prompt": "boat"}, timeout_s=1.0)
        assert calls == [1]
        assert not any(word in str(raised.value) for word in (SECRET, "boat", url))
        with pytest.raises(Transient):  # asking for the state of a job does no harm
            await outbound.request("GET", "/", timeout_s=1.0)


async def test_an_attempt_cut_off_in_mid_submit_is_uncertain_too():
    entered = asyncio.Event()

    async def behave(reader, writer):
        await read_request(reader)
        entered.set()
        await reader.read()

    async with scripted(behave) as url, opened(url) as outbound:
        asking = asyncio.create_task(outbound.request("POST", "/", json={}))
        await asyncio.wait_for(entered.wait(), 20)
        asking.cancel()
        with pytest.raises(SubmitUncertain):
            await asking


async def test_a_body_past_the_limit_is_not_read_to_its_end():
    async def behave(reader, writer):
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:  # without an end
            writer.write(b"x" * 10_000)
            await writer.drain()

    async with scripted(behave) as url, opened(url, max_bytes=50_000) as outbound:
        with pytest.raises(Transient, match="more than 50000 bytes"):
            await outbound.request("GET", "/", timeout_s=20)


async def test_a_compressed_answer_is_read_up_to_the_limit(site):
    for path, text in (("/", b'{"a": 1}'), ("/bomb", b" " * 1_000_000)):
        headers = {"Content-Encoding": "gzip"}
        site.expect_request(path).respond_with_data(gzip.compress(text), headers=headers)
    async with opened(site.url_for("/"), max_bytes=50_000) as outbound:
        assert (await outbound.request("GET", "/")).json() == {"a": 1}
        with pytest.raises(Transient, match="more than 50000 bytes"):
            await outbound.request("GET", "/bomb")
