"""Errors as pages, for a person who opens a wrong address or meets a limit."""

from http import HTTPStatus

from quart import Response, request

from gateway_shop.rendering import Notice, answer_page

_NOTHING = Notice("There is nothing here", "Check the address, or start from the front page.")
# By the beginning of the path.
_UNKNOWN = {
    "/play/": Notice("This is not on offer", "It is not sold here, or not any more."),
    "/task/": Notice(
        "This task is not known",
        "Check that the link is complete. Your purchases lists what was bought in this browser.",
    ),
    "/files/": Notice(
        "This link leads nowhere",
        "It is incomplete or its time is over. The page of the task has a fresh link.",
    ),
}
_ADMIN = Notice(
    "There is nothing here",
    "The pages of the operator start at /admin, with the login.",
    "/admin",
    "Go to /admin",
)
_OTHERS = {
    HTTPStatus.METHOD_NOT_ALLOWED: Notice(
        "This address is for programs", "A browser has nothing to open here."
    ),
    HTTPStatus.TOO_MANY_REQUESTS: Notice(
        "Too many requests", "Wait a few seconds, then load this page again."
    ),
}
_REFUSED = Notice("This did not work", "Check the address, or start from the front page.")
_FAULT = Notice(
    "This did not work",
    "The fault is the gateway's. Load this page again in a moment. It never charges by that.",
)


async def answer_error_page(status: int) -> Response:
    """Return the page of an error. It quotes nothing of the request."""
    return await answer_page("error.html", status=status, notice=_choose(status, request.path))


def _choose(status: int, path: str) -> Notice:
    if f"{path}/".startswith("/admin/"):
        return _ADMIN
    if status == HTTPStatus.NOT_FOUND:
        found = [one for start, one in _UNKNOWN.items() if path.startswith(start)]
        return found[0] if found else _NOTHING
    if status in _OTHERS:
        return _OTHERS[HTTPStatus(status)]
    return _FAULT if status >= HTTPStatus.INTERNAL_SERVER_ERROR else _REFUSED
