"""A pytest plugin that delays the seams of a gateway by 50 to 500 ms: `make test-slow`.

It delays each sent part of a response, each write of the store, and each call over HTTP: to the
chain, a vendor, a facilitator or a webhook. A test that passes only because one of them is fast
fails here.
"""

from __future__ import annotations

import asyncio
import functools
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import pytest

_MIN_S, _MAX_S = 0.05, 0.5
_chance = random.Random(os.environ.get("SLOW_SEED", "27"))


@pytest.fixture(scope="session", autouse=True)
def _slow_seams() -> Iterator[None]:
    from gateway.store.sqlite import writer
    from gateway.web.front.fast_path import FastPath
    from gateway_nodes.postgres.pool import Pool

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FastPath, "__call__", _sending_late(FastPath.__call__))
        patch.setattr(writer, "_commit_batch", _committed_late(writer._commit_batch))
        patch.setattr(Pool, "write", _late(Pool.write))
        patch.setattr(aiohttp.BaseConnector, "connect", _late(aiohttp.BaseConnector.connect))
        yield


def _late(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(function)
    async def late(*args: Any, **keywords: Any) -> Any:
        await _pause()
        return await function(*args, **keywords)

    return late


def _committed_late(commit: Callable[..., Any]) -> Callable[..., Any]:
    """Delay a commit in the writer's own thread, as a slow disk does: the order stays."""

    @functools.wraps(commit)
    def late(*args: Any) -> Any:
        time.sleep(_chance.uniform(_MIN_S, _MAX_S))
        return commit(*args)

    return late


def _sending_late(app: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(app)
    async def answer(self: Any, scope: Any, receive: Any, send: Any) -> None:
        await app(self, scope, receive, _late(send) if scope["type"] == "http" else send)

    return answer


async def _pause() -> None:
    await asyncio.sleep(_chance.uniform(_MIN_S, _MAX_S))
