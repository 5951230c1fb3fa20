"""Host names whose name server does not respond block no thread that others need."""

import asyncio
import socket
import threading

import pytest

from gateway.errors import Transient
from gateway.outputs import links
from gateway.outputs.links import LinkResolver

PUBLIC = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 443))]


@pytest.fixture
def silent(monkeypatch):
    """A name server that answers about slow.example when the test allows it."""
    answers = threading.Event()

    def getaddrinfo(host, port, **_):
        if host == "slow.example":
            assert answers.wait(60)
        return PUBLIC

    monkeypatch.setattr(links.socket, "getaddrinfo", getaddrinfo)
    yield answers
    answers.set()


async def until_free(names) -> list[str]:
    async with asyncio.timeout(60):
        while True:
            try:
                return await names.resolve("quick.example", 443)
            except Transient:
                await asyncio.sleep(0.01)


async def test_silent_names_leave_the_threads_of_the_loop_to_others(silent):
    names = LinkResolver(most=40)
    waiting = [asyncio.create_task(names.resolve("slow.example", 443)) for _ in range(39)]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        assert await asyncio.to_thread(lambda: "ran") == "ran"
        assert await names.resolve("quick.example", 443) == ["8.8.8.8"]
    silent.set()
    assert await asyncio.gather(*waiting) == [["8.8.8.8"]] * 39


async def test_a_look_up_keeps_its_place_until_its_thread_has_ended(silent):
    names = LinkResolver(most=1)
    given_up = asyncio.create_task(names.resolve("slow.example", 443))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    with pytest.raises(Transient, match="Too many names"):
        await names.resolve("quick.example", 443)
    silent.set()
    assert await until_free(names) == ["8.8.8.8"]
