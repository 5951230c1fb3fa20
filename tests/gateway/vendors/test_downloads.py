"""Links from an API: allowed hosts, and the address of the connection."""

import asyncio
import contextlib
import gc
import ssl

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from gateway import LinkDead, Outbound, ResultUnusable
from gateway.outputs import links
from gateway.outputs.links import is_public
from tests.patience import PATIENCE_S

HOST = "cdn.example"
SIBLING = "sibling.example"  # the same certificate is right for it


@pytest.fixture
def site(authority):
    with HTTPServer(ssl_context=authority.server(HOST, SIBLING), threaded=True) as server:
        yield server


@pytest.fixture
def names(names):
    names[HOST] = ["127.0.0.1"]
    return names


@pytest.fixture
async def client(authority):
    # The server would notice the API's key in a request to a link.
    made = Outbound(
        "https://api.example",
        headers={"Authorization": "Bearer sk"},
        tls=authority.client(),
        max_bytes=100_000,
    )
    yield made
    await made.close()


def link(site, path="/a.png", host=HOST):
    return f"https://{host}:{site.port}{path}"


async def test_a_link_is_fetched_under_its_own_name_and_without_our_key(site, names, client):
    seen = []

    def answer(request):
        seen.append((request.headers["Host"], request.headers.get("Authorization")))
        return Response(b"picture")

    site.expect_request("/a.png", query_string="token=1").respond_with_handler(answer)
    assert await client.download(link(site, "/a.png?token=1")) == b"picture"
    assert seen == [(f"{HOST}:{site.port}", None)]


@pytest.mark.parametrize("coding", ["aws-chunked", "gzip", "none", "UTF-8, aws-chunked"])
async def test_a_coding_that_the_file_does_not_have_is_ignored(site, names, client, coding):
    picture = b"\x89PNG\r\n\x1a\n" + b"\0" * 900
    headers = {"Content-Encoding": coding}
    site.expect_request("/a.png").respond_with_data(picture, headers=headers)
    assert await client.download(link(site)) == picture


async def test_the_certificate_must_be_the_names_and_not_the_addresss(site, names, client):
    names["other.example"] = ["127.0.0.1"]
    site.expect_request("/a.png").respond_with_data("picture")
    assert await client.download(link(site)) == b"picture"
    with pytest.raises(LinkDead):  # also right after: no connection is shared by two names
        await client.download(link(site, host="other.example"))


async def test_a_stranger_s_certificate_is_refused(site, names):
    site.expect_request("/a.png").respond_with_data("picture")
    stranger = Outbound("https://api.example", tls=ssl.create_default_context())
    with pytest.raises(LinkDead):
        await stranger.download(link(site))
    await stranger.close()


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    site, names, client, monkeypatch
):
    """A name that resolves differently the second time gains nothing: there is no second time."""
    asked = []

    def check(address):
        asked.append(address)
        names[HOST] = ["10.0.0.1"]
        return True

    monkeypatch.setattr(links, "is_public", check)
    site.expect_request("/a.png").respond_with_data("picture")
    assert await client.download(link(site)) == b"picture"
    assert asked == ["127.0.0.1"]


async def test_one_private_address_among_public_ones_is_refused(site, names, client):
    names[HOST] = ["127.0.0.1", "10.0.0.1"]
    with pytest.raises(LinkDead, match="not public"):
        await client.download(link(site))
    assert site.log == []


async def test_a_dead_address_is_followed_by_the_next(site, names, client):
    names[HOST] = ["127.0.0.9", "127.0.0.1"]  # the server listens on the second only
    site.expect_request("/a.png").respond_with_data("picture")
    assert await client.download(link(site)) == b"picture"


async def test_a_redirect_within_the_host_is_followed_and_checked_again(
    site, names, client, monkeypatch
):
    checks = []
    monkeypatch.setattr(links, "is_public", lambda address: not checks.append(address))
    site.expect_request("/a.png").respond_with_data("", 302, {"Location": "/b.png"})
    site.expect_request("/b.png").respond_with_data("picture")
    assert await client.download(link(site)) == b"picture"
    assert len(checks) == 2


@pytest.mark.parametrize(
    "target",
    [
        "https://other.example/a.png",
        "http://cdn.example/a.png",
        "https://169.254.169.254/latest",
        "https://cdn.example@evil.example/",
        "https://u:p@cdn.example/",
        "file:///etc/passwd",
        "//other.example/",
        "https://[",
    ],
)
async def test_a_redirect_elsewhere_is_refused(site, names, client, target):
    names["other.example"] = ["127.0.0.1"]
    site.expect_request("/a.png").respond_with_data("", 302, {"Location": target})
    with pytest.raises(LinkDead):
        await client.download(link(site))
    assert len(site.log) == 1


async def test_a_redirect_to_another_host_is_refused_although_that_would_answer(
    site, names, client
):
    names[SIBLING] = ["127.0.0.1"]
    site.expect_request("/b.png").respond_with_data("picture")
    elsewhere = link(site, "/b.png", host=SIBLING)
    assert await client.download(elsewhere) == b"picture"
    site.expect_request("/a.png").respond_with_data("", 302, {"Location": elsewhere})
    with pytest.raises(LinkDead, match="another host"):
        await client.download(link(site))


async def test_no_connection_is_kept_for_another_name(authority, names, client):
    """An open connection was made with another name's certificate."""
    names["other.example"] = ["127.0.0.1"]
    conversations = []

    async def connected(reader, writer):
        conversations.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=authority.server(HOST))
    port = server.sockets[0].getsockname()[1]
    assert await client.download(f"https://{HOST}:{port}/") == b"hi"
    with pytest.raises(LinkDead):
        await client.download(f"https://other.example:{port}/")
    await client.close()
    server.close()
    await asyncio.wait(conversations, timeout=20)


async def test_a_download_that_is_cancelled_during_the_handshake_hangs_up(names, client):
    """The server accepts the connection and never responds in TLS."""
    ended = asyncio.Event()
    greeted = asyncio.Event()

    async def stay_silent(reader, writer):
        await reader.read(1)
        greeted.set()
        await reader.read()
        ended.set()
        writer.close()

    gc.disable()  # it would close what nobody closes
    try:
        async with asyncio.timeout(PATIENCE_S):
            server = await asyncio.start_server(stay_silent, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            download = asyncio.create_task(client.download(f"https://{HOST}:{port}/a.png"))
            await greeted.wait()
            download.cancel()
            with pytest.raises(asyncio.CancelledError):
                await download
            await ended.wait()
    finally:
        gc.enable()
        server.close()


async def test_a_circle_of_redirects_ends(site, names, client):
    site.expect_request("/a.png").respond_with_data("", 302, {"Location": "/a.png"})
    with pytest.raises(LinkDead, match="too often"):
        await client.download(link(site))


@pytest.mark.parametrize("status", [403, 404, 410, 500])
async def test_an_expired_link_is_a_failure(site, names, client, status):
    site.expect_request("/a.png").respond_with_data("gone", status)
    with pytest.raises(LinkDead, match=str(status)):
        await client.download(link(site))


async def test_a_download_past_the_limit_is_cut_off(site, names, client):
    site.expect_request("/a.png").respond_with_data(b"x" * 200_000)
    with pytest.raises(ResultUnusable, match="larger than what is sold"):
        await client.download(link(site))


@pytest.mark.parametrize(
    "url",
    [
        "http://cdn.example/a.png",
        "ftp://cdn.example/",
        "https:///a",
        "",
        "a.png",
        "https://user:pass@cdn.example/",
        "https://unknown.example/",
        "data:image/png;base64,AAAA",
        5,
        None,
    ],
)
async def test_what_is_no_plain_https_link_is_refused(names, client, url):
    with pytest.raises(LinkDead) as raised:
        await client.download(url)
    assert "pass" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    ["https://127.0.0.1:1/", "https://localhost:1/", "https://0x7f.1:1/", "https://[::1]:1/"],
)
async def test_this_machine_cannot_be_reached_by_any_spelling(client, url):
    with pytest.raises(LinkDead) as raised:
        await client.download(url)
    assert "Connect" not in str(raised.value) or "0x7f" in url


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_the_internet_is_public(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "100.100.100.200", "192.0.0.192", "168.63.129.16", "224.0.0.1"),
        *("239.1.1.1", "255.255.255.255", "240.0.0.1", "198.18.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "fdaa::3", "ff02::1"),
        *("::ffff:10.0.0.1", "::ffff:169.254.169.254", "::10.0.0.1", "64:ff9b::a9fe:a9fe"),
        *("2002:a00:1::", "2001:0:a00:1::", "2001:db8::1", "64:ff9b:1::1", "nonsense", ""),
    ],
)
def test_everything_else_is_not(address):
    assert not is_public(address)
