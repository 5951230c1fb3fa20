"""Job URLs from an API: the key is sent to its hosts, and to no others."""

import asyncio
import contextlib

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from gateway import Outbound, SubmitUncertain, Transient
from gateway.outputs import links

KEY = "key-never-to-be-seen"
POLLED = "eu.acme.example"  # one of the API's own hosts
STRANGER = "evil.example"


@pytest.fixture
def site(authority):
    """A server that responds under either name."""
    with HTTPServer(ssl_context=authority.server(POLLED, STRANGER), threaded=True) as server:
        yield server


@pytest.fixture
def names(names):
    names.update({POLLED: ["127.0.0.1"], STRANGER: ["127.0.0.1"]})
    return names


@pytest.fixture
async def api(authority):
    made = Outbound(
        "https://api.acme.example/v1",
        headers={"x-key": KEY},
        hosts=("*.acme.example",),
        tls=authority.client(),
    )
    yield made
    await made.close()


def requests_of(site):
    """Respond to everything, and return the requests."""
    seen = []

    def answer(request):
        seen.append((request.method, request.full_path, request.headers.get("x-key")))
        return Response("{}")

    site.expect_request("/jobs/1").respond_with_handler(answer)
    return seen


def address(site, host=POLLED, scheme="https"):
    return f"{scheme}://{host}:{site.port}/jobs/1?id=7"


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_host_of_the_apis_is_asked_with_its_key(site, names, api, method):
    seen = requests_of(site)
    answer = await api.request(method, address(site))
    assert answer.status == 200
    assert seen == [(method, "/jobs/1?id=7", KEY)]


async def test_a_host_of_the_apis_gets_a_form_and_headers_too(site, names, api):
    seen = []

    def answer(request):
        seen.append((request.files["file"].read(), request.headers["X-Once"], request.host))
        return Response("{}")

    site.expect_request("/upload").respond_with_handler(answer)
    url = f"https://{POLLED}:{site.port}/upload"
    files = {"file": ("a.pdf", b"%PDF", "application/pdf")}
    await api.request("POST", url, files=files, headers={"X-Once": "1"})
    assert seen == [(b"%PDF", "1", f"{POLLED}:{site.port}")]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "host",
    [
        *(STRANGER, f"{POLLED}.{STRANGER}", f"acme.example.{STRANGER}", "xacme.example"),
        *("acme.example", f"{POLLED}@{STRANGER}", f"user:pass@{POLLED}", f"{POLLED}."),
    ],
)
async def test_nobody_else_is_asked_and_nobody_else_hears_the_key(site, names, api, method, host):
    for name in (host, host.rpartition("@")[2]):
        names[name] = ["127.0.0.1"]
    seen = requests_of(site)
    with pytest.raises(Transient) as raised:
        await api.request(method, address(site, host))
    assert (seen, site.log) == ([], [])
    assert not any(word in str(raised.value) for word in (KEY, "pass", STRANGER))


async def test_an_api_without_other_hosts_trusts_its_own_name_alone(site, names, authority):
    api = Outbound(f"https://{POLLED}/v1", headers={"x-key": KEY}, tls=authority.client())
    seen = requests_of(site)
    await api.request("GET", address(site))  # not below its base, but its own host
    with pytest.raises(Transient, match="not its own"):
        await api.request("GET", address(site, STRANGER))
    await api.close()
    assert [key for _, _, key in seen] == [KEY]


async def test_the_key_never_travels_in_plain(names, api):
    """The scheme is checked before any request."""
    with HTTPServer(threaded=True) as plain:
        seen = requests_of(plain)
        with pytest.raises(Transient, match="not plain https"):
            await api.request("GET", address(plain, scheme="http"))
    assert seen == []


async def test_a_host_of_the_apis_that_leads_inside_is_not_asked(site, names, api):
    names[POLLED] = ["127.0.0.1", "10.0.0.1"]
    seen = requests_of(site)
    with pytest.raises(Transient, match="not public"):
        await api.request("POST", address(site), json={})
    assert seen == []


async def test_the_address_that_was_checked_is_the_one_that_hears_the_key(
    site, names, api, monkeypatch
):
    def check(checked):
        names[POLLED] = ["10.0.0.1"]
        return checked == "127.0.0.1"

    monkeypatch.setattr(links, "is_public", check)
    seen = requests_of(site)
    await api.request("GET", address(site))
    assert len(seen) == 1


async def test_the_certificate_must_be_the_hosts(names, api, authority):
    with HTTPServer(ssl_context=authority.server(STRANGER), threaded=True) as other:
        seen = requests_of(other)
        with pytest.raises(Transient):
            await api.request("POST", address(other), json={})
    assert seen == []


async def test_a_redirect_is_an_answer_and_the_key_does_not_follow_it(site, names, api):
    seen = requests_of(site)
    to = {"Location": address(site, STRANGER)}
    site.expect_request("/moved").respond_with_data("", 307, to)
    answer = await api.request("POST", f"https://{POLLED}:{site.port}/moved", json={})
    assert (answer.status, seen) == (307, [])


# -- no response


@contextlib.asynccontextmanager
async def silent(authority, behave):
    """Serve one behaviour over TLS, after the request was read; yields the port and the calls."""
    calls, conversations = [], []

    async def connected(reader, writer):
        conversations.append(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    await reader.readexactly(int(line.split(b":")[1]))
            calls.append(head.split(b" ")[0])
            await behave(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError, OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=authority.server(POLLED))
    try:
        yield server.sockets[0].getsockname()[1], calls
    finally:
        server.close()
        if conversations:
            await asyncio.wait(conversations, timeout=20)


async def hangs_up(reader, writer):
    pass


async def stops_in_the_middle(reader, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()


async def stays_silent(reader, writer):
    await reader.read()


@pytest.mark.parametrize(
    ("behave", "timeout_s"), [(hangs_up, 60), (stops_in_the_middle, 60), (stays_silent, 5)]
)
async def test_what_went_out_to_a_host_and_was_not_answered_is_uncertain(
    authority, names, api, behave, timeout_s
):
    async with silent(authority, behave) as (port, calls):
        url = f"https://{POLLED}:{port}/jobs"
        with pytest.raises(SubmitUncertain) as raised:
            await api.request("POST", url, json={"prompt": "boat"}, timeout_s=timeout_s)
        assert calls == [b"POST"]
        assert not any(word in str(raised.value) for word in (KEY, "boat", POLLED))
        with pytest.raises(Transient):  # asking for the state of a job does no harm
            await api.request("GET", url, timeout_s=timeout_s)


async def test_a_submit_cut_off_on_its_way_is_uncertain(authority, names, api):
    entered = asyncio.Event()

    async def behave(reader, writer):
        entered.set()
        await reader.read()

    async with silent(authority, behave) as (port, _):
        asking = asyncio.create_task(api.request("POST", f"https://{POLLED}:{port}/", json={}))
        await asyncio.wait_for(entered.wait(), 20)
        asking.cancel()
        with pytest.raises(SubmitUncertain):
            await asking


async def test_an_address_that_does_not_answer_is_followed_by_the_next(site, names, api):
    """None of the body was sent to the first: it is still one submit."""
    names[POLLED] = ["127.0.0.9", "127.0.0.1"]  # the server listens on the second only
    seen = requests_of(site)
    await api.request("POST", address(site), json={})
    assert len(seen) == 1


async def test_a_submit_that_reached_no_address_may_be_tried_again(site, names, api):
    names[POLLED] = ["127.0.0.9", "127.0.0.8"]
    with pytest.raises(Transient):
        await api.request("POST", address(site), json={})
    assert site.log == []
