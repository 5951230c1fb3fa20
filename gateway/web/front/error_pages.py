"""Errors as pages for a person in a browser; a program gets JSON."""

from collections.abc import Awaitable, Callable

import attrs
from quart import Request, Response

# JSON even in a browser: these paths are for programs.
_FOR_PROGRAMS = ("/api/", "/.well-known/", "/mcp")
_KINDS = ("application/json", "text/html")


@attrs.frozen(eq=False, repr=False)
class ErrorPages:
    """A plugin's function that shows an error by its HTTP status; kept by `Gateway.keep`."""

    render: Callable[[int], Awaitable[Response]]


def wants_page(asked: Request) -> bool:
    """Whether a person opens an address: the client names HTML and prefers it to JSON."""
    if asked.method not in ("GET", "HEAD") or asked.path.startswith(_FOR_PROGRAMS):
        return False
    if "text/html" not in asked.headers.get("Accept", "").lower():
        return False
    return asked.accept_mimetypes.best_match(_KINDS) == "text/html"
