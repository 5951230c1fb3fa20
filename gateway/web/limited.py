"""The rate limit of a route: counted before anything of the request is read."""

import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from quart import Request, request

from gateway.web.rate_limits import client_address
from gateway.web.services import services

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def limited(
    name: str | Callable[[], str],
) -> Callable[[Callable[Parameters, Awaitable[Answer]]], Callable[Parameters, Awaitable[Answer]]]:
    """Count each request to the route against limit `name`; too many answer 429.

    A callable is asked for the name of each request's limit.
    """

    def decorate(
        route: Callable[Parameters, Awaitable[Answer]],
    ) -> Callable[Parameters, Awaitable[Answer]]:
        @functools.wraps(route)
        async def counted(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
            services().limits.hit(name() if callable(name) else name, address())
            return await route(*args, **kwargs)

        return counted

    return decorate


def address() -> str:
    """Return what the current client is counted by."""
    return address_of(request, services().settings.client_ip_header)


def address_of(asked: Request, header: str) -> str:
    """Return what a request's client is counted by; `header` is the trusted proxy's, or empty."""
    client = asked.scope.get("client") or ("unknown", 0)
    forwarded = asked.headers.getlist(header) if header else []
    return client_address(client[0], ",".join(forwarded))
