"""Declares the routes that buyers call, and serves them by Quart.

`fast_path` serves the plain requests to the same declarations.
"""

import re
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol, cast

import attrs
from quart import Quart, Request, Response, request

from gateway.catalog.catalog import Catalog
from gateway.errors import ValidationError
from gateway.running.gateway import Gateway
from gateway.web.front.answers import Answer
from gateway.web.front.body_memory import SMALL_BODY_BYTES
from gateway.web.front.current import address, current_gateway
from gateway.web.front.event_stream import wants_events

_NO_QUERY = re.compile(b"")


class Asked(Protocol):
    """The interface of a request for answer functions."""

    @property
    def part(self) -> str:
        """The variable part of the path; empty if the rule has none."""
        ...

    @property
    def address(self) -> str:
        """The client's address for rate limits."""
        ...

    def header(self, name: str) -> str | None:
        """Return the value of a header; None without it."""
        ...

    def query(self, name: str, default: str) -> str:
        """Return a parameter of the query."""
        ...

    async def read_body(self) -> bytes:
        """Return the whole body.

        Callers drop it before they wait for a payment, because it may be a large file. Raises
        `ValidationError` for a content type other than JSON, `RequestTimeout`, `BodiesFull` and
        `RequestEntityTooLarge`.
        """
        ...


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Route:
    """One method of one path that buyers call."""

    # As Quart writes it, with at most one variable.
    rule: str
    method: str
    answer: Callable[[Gateway, Asked], Coroutine[Any, Any, Answer]]
    # The name of the rate limit, or a function that returns it; None counts nothing.
    limit: str | Callable[[Gateway, Asked], str] | None = None
    # Returns the maximum body size by the path's variable part.
    body_bytes: Callable[[Catalog, str], int] = attrs.field(
        default=lambda _catalog, _part: SMALL_BODY_BYTES
    )
    # Answers a client that prefers a stream of events; such requests always go through Quart.
    stream: "Callable[[Gateway, QuartAsked], Coroutine[Any, Any, Response]] | None" = None
    # Whether plain requests skip Quart, and the query string that they may have.
    skips_quart: bool = False
    plain_query: re.Pattern[bytes] = _NO_QUERY

    async def count(self, gateway: Gateway, asked: Asked) -> None:
        """Count the request against its rate limit; raises `TooManyRequests`."""
        limit = self.limit(gateway, asked) if callable(self.limit) else self.limit
        if limit is not None:
            await gateway.limits.hit(limit, asked.address)


class RouteTable:
    """The routes, found by method and path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        # By method and the rule's fixed prefix; `<` marks a variable part at the end.
        self._routes: dict[tuple[str, str, str], Route] = {}
        # Those with a variable before the end, with their prefix and suffix.
        self._inner: list[tuple[str, str, Route]] = []
        for route in self.routes:
            prefix, mark, rest = route.rule.partition("<")
            suffix = rest.partition(">")[2]
            if "<" in suffix:
                raise ValueError(f"{route.rule}: a rule has one variable")
            if suffix:
                self._inner.append((prefix, suffix, route))
            else:
                self._routes[route.method, prefix, mark] = route
        # As in Quart, the longer fixed part wins.
        self._inner.sort(key=lambda inner: -len(inner[0]))

    def find(self, method: str, path: str) -> tuple[Route, str] | None:
        """Return the route of a path, and the path's variable part."""
        if route := self._routes.get((method, path, "")):
            return route, ""
        folder, slash, part = path.rpartition("/")
        route = self._routes.get((method, folder + slash, "<"))
        if route and part:
            return route, part
        return self._find_inner(method, path) if self._inner else None

    def _find_inner(self, method: str, path: str) -> tuple[Route, str] | None:
        """Find a route whose variable is before the end of its rule, like Quart: one segment."""
        for prefix, suffix, route in self._inner:
            if route.method == method and path.startswith(prefix) and path.endswith(suffix):
                part = path[len(prefix) : len(path) - len(suffix)]
                if part and "/" not in part:
                    return route, part
        return None


@attrs.frozen(eq=False, repr=False)
class QuartAsked:
    """A request that Quart has read."""

    request: Request
    part: str

    @property
    def address(self) -> str:
        """The client's address for rate limits."""
        return address()

    def header(self, name: str) -> str | None:
        """Return the value of a header; None without it."""
        return self.request.headers.get(name)

    def query(self, name: str, default: str) -> str:
        """Return a parameter of the query."""
        return self.request.args.get(name, default)

    async def read_body(self) -> bytes:
        """Return the whole body, whose size the app's request class limits."""
        data = cast(bytes, await self.request.get_data(cache=False, as_text=False))
        if data and self.request.mimetype not in ("", "application/json"):
            raise ValidationError("Content-Type must be application/json.")
        return data


def add_routes(app: Quart, routes: Iterable[Route]) -> None:
    """Serve routes by Quart; a GET route also answers HEAD."""
    for route in routes:
        app.add_url_rule(route.rule, route.answer.__name__, _view_of(route), methods=[route.method])


def _view_of(route: Route) -> Callable[..., Coroutine[Any, Any, Response]]:
    async def view(**parts: str) -> Response:
        gateway, asked = current_gateway(), QuartAsked(request, "".join(parts.values()))
        await route.count(gateway, asked)
        if route.stream is not None and wants_events(request):
            return await route.stream(gateway, asked)
        answer = await route.answer(gateway, asked)
        return answer.to_response(request.method)

    return view
