"""Documents by `fileUrl` are fetched only if needed, and only from permitted addresses."""

import asyncio
import json
import socket
import threading

import attrs
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from gateway import PriceStep, hookimpl
from gateway.domain import MAX_FILE_BYTES
from gateway.errors import BodiesFull, ExecutionError
from gateway.outputs import links
from gateway_mcp.linked_files import SHARES, LinkedFiles
from gateway_mcp.sdk_server import SdkServer
from tests.cases import each
from tests.conftest import ScriptedPlugin, ScriptedProvider, nothing_charged, running
from tests.gateway.vendors.conftest import authority  # noqa: F401 - a fixture
from tests.plugins.gateway_mcp.app.agent import Agent

HOST = "papers.example"
TEXT = b"a paper"


@pytest.fixture
def names(monkeypatch):
    """Addresses of this test's names; every other name is resolved as usual."""
    table = {HOST: "127.0.0.1"}
    usual = socket.getaddrinfo

    def getaddrinfo(host, port, *more, **named):
        return usual(table.get(host, host), port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(links, "is_public", lambda address: address.startswith("127."))
    return table


@pytest.fixture
def site(authority, names):  # noqa: F811
    with HTTPServer(ssl_context=authority.server(HOST), threaded=True) as server:
        yield server


@pytest.fixture
async def fetching(gateway, authority):  # noqa: F811
    """The gateway under test, which trusts the site's certificate."""
    gateway.services.find(SdkServer).linked_files = LinkedFiles(authority.client())
    yield gateway
    await gateway.services.find(SdkServer).linked_files.close()


@pytest.fixture
def agent(fetching):
    return Agent(fetching)


def url(site, path="/a.txt", host=HOST):
    return f"https://{host}:{site.port}{path}"


def sentence_of(answer) -> str:
    assert answer["isError"] is True
    return json.loads(answer["content"][0]["text"])["error"]


async def test_a_paper_is_bought_by_its_address(agent, site, payer, provider):
    site.expect_request("/a.txt").respond_with_data(TEXT)
    asked = await agent.call("paper", fileUrl=url(site))
    assert asked["structuredContent"]["accepts"][0]["amount"] == "10000"
    # The price does not depend on the pages, so the quote fetched nothing.
    assert site.log == []
    payment = payer.payload(10_000, version=2)
    bought = await agent.call("paper", payment, fileUrl=url(site))
    assert bought["structuredContent"]["result"]["text"] == "# a.txt\n"
    assert provider.requests[-1].attachment.data == TEXT
    assert len(site.log) == 1
    again = await agent.call("paper", payment, fileUrl=url(site))
    assert again["structuredContent"]["taskId"] == bought["structuredContent"]["taskId"]


async def test_the_same_file_in_base64_is_the_same_request(agent, site, payer):
    site.expect_request("/a.txt").respond_with_data(TEXT)
    payment = payer.payload(10_000, version=2)
    bought = await agent.call("paper", payment, fileUrl=url(site))
    again = await agent.call("paper", payment, fileBase64="YSBwYXBlcg==", fileName="a.txt")
    assert again["structuredContent"]["taskId"] == bought["structuredContent"]["taskId"]


async def test_another_file_at_the_address_is_another_request(agent, site, payer, chain, fetching):
    site.expect_ordered_request("/a.txt").respond_with_data(TEXT)
    site.expect_ordered_request("/a.txt").respond_with_data(b"another paper")
    payment = payer.payload(10_000, version=2)
    await agent.call("paper", payment, fileUrl=url(site))
    async with nothing_charged(fetching, chain):
        other = await agent.call("paper", payment, fileUrl=url(site))
    assert other["structuredContent"]["error"] == "invalid_exact_evm_nonce_already_used"


@pytest.mark.parametrize("why", ["gone", "busy"])
async def test_a_repeated_payment_is_not_told_that_nothing_was_charged(
    agent, fetching, chain, site, payer, why
):
    site.expect_oneshot_request("/a.txt").respond_with_data(TEXT)
    payment = payer.payload(10_000, version=2)
    await agent.call("paper", payment, fileUrl=url(site))
    if why == "busy":
        await fetching.services.find(SdkServer).linked_files.close()
        fetching.services.find(SdkServer).linked_files = LinkedFiles(
            shares=attrs.evolve(SHARES, slots=0)
        )
    async with nothing_charged(fetching, chain):
        again = await agent.call("paper", payment, fileUrl=url(site))
    message = sentence_of(again)
    assert message.startswith(("The file at fileUrl cannot", "Too many files are being fetched."))
    assert message.endswith("its task is shown once the file can be fetched.")


async def test_a_name_may_be_given_where_the_address_has_none(agent, site, payer, provider):
    site.expect_request("/download").respond_with_data(TEXT)
    asked = await agent.call("paper", fileUrl=url(site, "/download"))
    assert sentence_of(asked) == "fileName must end in one of: .pdf, .txt."
    payment = payer.payload(10_000, version=2)
    bought = await agent.call(
        "paper", payment, fileUrl=url(site, "/download?id=1"), fileName="mine.txt"
    )
    assert bought["structuredContent"]["status"] == "completed"
    assert provider.requests[-1].attachment.name == "mine.txt"


@each(
    "arguments, sentence",
    [
        ({"fileUrl": 5}, "fileUrl must be a string."),
        (
            {"fileUrl": "https://a.example/a.txt", "fileBase64": "eA==", "fileName": "a.txt"},
            "Give either fileUrl or fileBase64, not both.",
        ),
        ({"fileUrl": "https://[/a.txt"}, "fileUrl is no address."),
        ({"fileUrl": "https://a.example/a.exe"}, "fileName must end in one of: .pdf, .txt."),
        ({"fileName": "a.txt"}, "fileBase64 is missing."),
    ],
)
async def test_wrong_arguments_are_refused_without_a_fetch(agent, payer, site, arguments, sentence):
    answer = await agent.call("paper", payer.payload(10_000, version=2), **arguments)
    assert sentence_of(answer) == sentence
    assert site.log == []


# -- attacks


@each(
    "where",
    [
        "http://{host}:{port}/a.txt",
        "https://user:word@{host}:{port}/a.txt",
        "https://10.0.0.1/a.txt",
        "https://169.254.169.254/latest/a.txt",
        "https://[::1]:{port}/a.txt",
        "https://{host}:{port}/away.txt",
        "https://{host}:{port}/gone.txt",
        "https://nowhere.example/a.txt",
        "file:///etc/passwd.txt",
        "https://" + 2_048 * "a" + "/a.txt",
    ],
)
async def test_what_may_not_be_fetched_is_refused_in_one_sentence(
    agent, fetching, chain, payer, site, where
):
    site.expect_request("/away.txt").respond_with_response(
        Response(status=302, headers={"Location": "https://evil.example/a.txt"})
    )
    link = where.format(host=HOST, port=site.port)
    async with nothing_charged(fetching, chain):
        answer = await agent.call("paper", payer.payload(10_000, version=2), fileUrl=link)
    message = sentence_of(answer)
    assert message.startswith(("The file at fileUrl cannot be fetched.", "fileUrl must have up to"))
    assert str(site.port) not in message


async def test_a_file_that_is_too_large_is_refused(agent, fetching, chain, payer, site):
    site.expect_request("/a.txt").respond_with_data(b"x" * (MAX_FILE_BYTES + 1))
    async with nothing_charged(fetching, chain):
        answer = await agent.call("paper", payer.payload(10_000, version=2), fileUrl=url(site))
    assert sentence_of(answer) == "The file is larger than 7.5 MB."


async def test_a_file_that_never_arrives_is_given_up(fetching, authority, agent, payer, site):  # noqa: F811
    fetching.services.find(SdkServer).linked_files = LinkedFiles(authority.client(), fetch_s=0.05)
    given_up = threading.Event()
    site.expect_request("/a.txt").respond_with_handler(lambda _: Response(str(given_up.wait())))
    answer = await agent.call("paper", payer.payload(10_000, version=2), fileUrl=url(site))
    given_up.set()
    assert sentence_of(answer).startswith("The file at fileUrl cannot be fetched.")
    await fetching.services.find(SdkServer).linked_files.close()


@pytest.mark.parametrize("payment", [{}, "e30=", {"x402Version": 2}], ids=str)
async def test_a_payment_that_is_none_fetches_nothing(agent, site, payment):
    answer = await agent.call("paper", payment, fileUrl=url(site))
    assert answer["structuredContent"]["accepts"][0]["amount"] == "10000"
    assert site.log == []


class Drip:
    """Endless files at the site; each fetch is counted once it has begun."""

    def __init__(self, site) -> None:
        self.begun = threading.Semaphore(0)
        self.over = threading.Event()
        site.expect_request("/slow.txt").respond_with_handler(self._answer)

    def _answer(self, _) -> Response:
        self.begun.release()
        return Response(str(self.over.wait()))

    async def wait_for(self, count: int) -> None:
        for _ in range(count):
            await asyncio.to_thread(self.begun.acquire)


@pytest.fixture
def drip(site):
    made = Drip(site)
    yield made
    made.over.set()


@pytest.fixture
async def fetch(site, authority):  # noqa: F811
    """Starts fetches of a path from an address."""
    files, tasks = LinkedFiles(authority.client()), []

    def start(address, path="/slow.txt"):
        tasks.append(asyncio.create_task(files.fetch(url(site, path), address)))
        return tasks[-1]

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await files.close()


async def test_an_address_fetches_two_files_at_a_time(fetch, drip):
    fetches = [fetch("a"), fetch("a")]
    await drip.wait_for(2)
    with pytest.raises(ExecutionError, match="Too many files are being fetched"):
        await fetch("a")
    assert not any(task.done() for task in fetches)


async def test_addresses_that_fetch_slowly_keep_no_other_out(fetch, drip, site):
    site.expect_request("/a.txt").respond_with_data(TEXT)
    slow = [fetch(address) for address in "aabb"]
    await drip.wait_for(4)
    assert await fetch("c", "/a.txt") == TEXT
    (cut,) = (task for task in slow if task.done())
    with pytest.raises(ExecutionError, match="Too many files are being fetched"):
        await cut


async def test_a_fetched_file_takes_its_room_among_the_bodies(agent, fetching, payer, site):
    site.expect_request("/a.txt").respond_with_data(TEXT)

    def refuse(*_, **__):
        raise BodiesFull

    body = fetching.app.request_class.body_class
    usual, body.admit = body.admit, lambda self, size: size < 10**6 or refuse()
    try:
        answer = await agent.call("paper", payer.payload(10_000, version=2), fileUrl=url(site))
    finally:
        body.admit = usual
    assert "Too many large requests are being read" in sentence_of(answer)
    assert site.log == []


class PagesPlugin:
    """Sells a paper whose price depends on its pages."""

    __name__ = "pages-plugin"

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        sold = []
        ScriptedPlugin(ScriptedProvider()).register_endpoints(lambda *each: sold.append(each), None)
        steps = (PriceStep(price_units=30_000, min_pages=2),)
        paper, provider = sold[1]
        register(attrs.evolve(paper, slug="by-pages", price_steps=steps, max_pages=10), provider)


async def test_a_price_by_pages_needs_the_file(settings, clock, site, authority):  # noqa: F811
    site.expect_request("/a.txt").respond_with_data(TEXT)
    async with running(settings, None, [PagesPlugin()], now=clock) as gateway:
        gateway.services.find(SdkServer).linked_files = LinkedFiles(authority.client())
        asked = await Agent(gateway).call("by_pages", fileUrl=url(site))
        assert asked["structuredContent"]["accepts"][0]["amount"] == "10000"
        assert len(site.log) == 1
        await gateway.services.find(SdkServer).linked_files.close()
