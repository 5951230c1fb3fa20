"""The server of a fake API: follows a scene's script and records the requests."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from gateway_testing.fakes.api import Ask, FakeApi, Made, Reply, Undescribed

_PIECE = b"\0" * 1_000_000
# Pieces of an endless response: 200 MB, more than a client with a limit reads.
_PIECES = 200
# The longest time to hold a response.
_HOLD_S = 30.0
# Bytes of a body that are searched for a job's id.
_NAMED_IN_BYTES = 100_000
_SOCKET = "werkzeug.socket"


@attrs.define
class Turns:
    """Responses in turn; the last one is repeated."""

    left: list[str]

    def take(self) -> str:
        """Return the next response."""
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


@attrs.define
class FakeServer:
    """The API of one scene, for the provider."""

    server: HTTPServer
    api: FakeApi
    submits: Turns = attrs.field(factory=lambda: Turns(["made"]))
    lives: tuple[str, ...] = ("made",)
    """The responses to polls of each job, in turn, such as "waiting waiting made"."""
    others: str = "other"
    files: str = "whole"
    seen: list[str] = attrs.field(factory=list)
    """Method and path of every request."""
    submitted: list[Ask] = attrs.field(factory=list)
    polled: list[Ask] = attrs.field(factory=list)
    cancelled: list[Ask] = attrs.field(factory=list)
    uploaded: list[Ask] = attrs.field(factory=list)
    """Requests with a body that neither submit nor name a job."""
    fetched: list[str] = attrs.field(factory=list)
    """Paths of the files that were fetched."""
    retry_after: str | None = None
    """The Retry-After of the last response."""
    sent_bytes: int = 0
    """Bytes sent of the last endless response."""
    mistakes: list[str] = attrs.field(factory=list)
    """Mistakes of the author's FakeApi, each in a sentence."""
    gate: threading.Event = attrs.field(factory=threading.Event)
    made: Made = attrs.field(init=False)
    _living: dict[int, Turns] = attrs.field(factory=dict, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    @made.default
    def _made(self) -> Made:
        return Made(self.api.output_host)

    @property
    def url(self) -> str:
        """The URL of the fake API."""
        return self.server.url_for("").rstrip("/")

    def begin(self) -> None:
        """Handle all requests to the server."""
        self.server.clear()
        self.server.expect_request(re.compile(".*")).respond_with_handler(self._answer)

    def end(self) -> None:
        """Release the responses that are still held."""
        self.gate.set()

    def set_answers(self, *submits: str, jobs: tuple[str, ...] = (), others: str = "") -> None:
        """Set the next responses; `jobs` restarts every job's responses."""
        with self._lock:
            if submits:
                self.submits = Turns(list(submits))
            if jobs:
                self.lives = jobs
                self._living.clear()
            if others:
                self.others = others

    def _answer(self, request: Request) -> Response:
        with self._lock:
            if request.path.startswith("/made/"):
                self.fetched.append(request.path)
                return self._file(request.path)
            ask, name = self._record(request)
        return self._reply(name, ask, request)

    def _record(self, request: Request) -> tuple[Ask, str]:
        line = f"{request.method} {request.path}"
        self.seen.append(line)
        is_submit = re.fullmatch(self.api.submit, line) is not None
        body = request.get_data()
        number = len(self.submitted) + 1 if is_submit else self._job_in(request, body)
        ask = Ask(
            method=request.method,
            path=request.path,
            query=request.args.to_dict(),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=body,
            url=self.url,
            job=self.api.job_id(number) if number else "",
            made=self.made,
        )
        if is_submit:
            self.submitted.append(ask)
            return ask, self.submits.take()
        if self.api.cancel and re.fullmatch(self.api.cancel, line):
            self.cancelled.append(ask)
            return ask, "cancelled"
        if number and re.fullmatch(self.api.poll or ".*", line):
            self.polled.append(ask)
            return ask, self._life(number).take()
        if not re.fullmatch(self.api.others or ".*", line):
            return ask, "unknown"
        if body:
            self.uploaded.append(ask)
        return ask, self.others

    def _job_in(self, request: Request, body: bytes) -> int:
        """Return the number of the job that a request names; 0 if it names none."""
        text = f"{request.full_path} {body[:_NAMED_IN_BYTES]!r}"
        submits = range(len(self.submitted), 0, -1)
        return next((number for number in submits if self.api.job_id(number) in text), 0)

    def _life(self, number: int) -> Turns:
        life = self.lives[min(number, len(self.lives)) - 1]
        return self._living.setdefault(number, Turns(life.split()))

    def _reply(self, name: str, ask: Ask, request: Request) -> Response:
        if name == "held":
            self.gate.wait(_HOLD_S)
            name = "dropped"
        if name == "dropped":
            request.environ[_SOCKET].shutdown(socket.SHUT_RDWR)
            return Response()
        if name == "endless":
            return Response(self._endless(), 200, content_type="application/json")
        return _generic_reply(name) or self._author_reply(name, ask)

    def _author_reply(self, name: str, ask: Ask) -> Response:
        """Return the response of the author's FakeApi."""
        try:
            reply: Reply = getattr(self.api, name)(ask)
        except Undescribed as error:
            return self._record_mistake(str(error))
        except Exception as error:  # noqa: BLE001 - reported as the test's failure
            where = f"{ask.method} {ask.path}"
            return self._record_mistake(
                f"Your FakeApi's `{name}` raised {type(error).__name__}: {error} (for {where})."
            )
        self.retry_after = reply.headers.get("Retry-After")
        headers = {"Content-Type": "application/json", **reply.headers}
        return Response(reply.data, reply.status, headers)

    def _record_mistake(self, sentence: str) -> Response:
        self.mistakes.append(sentence)
        return Response(sentence, 500)

    def _file(self, path: str) -> Response:
        kind = self.files
        if kind.startswith("first "):
            kind = kind.removeprefix("first ") if path == self.fetched[0] else "whole"
        if kind == "gone":
            return Response("Gone", 404)
        if kind == "page":
            return Response("<html>Log in</html>", 200, content_type="text/html")
        if kind == "endless":
            return Response(self._endless(), 200, content_type="image/png")
        return Response(self.made.data, 200, content_type="image/png")

    def _endless(self) -> Iterator[bytes]:
        self.sent_bytes = 0
        for _ in range(_PIECES):
            self.sent_bytes += len(_PIECE)
            yield _PIECE


def _generic_reply(name: str) -> Response | None:
    """Return a generic response; None if the author's FakeApi is to respond."""
    kind, _, rest = name.partition(" ")
    if kind == "error":
        # A server may respond so although it took the request.
        return Response("<html>Error</html>", int(rest), content_type="text/html")
    if kind == "json":
        return Response(rest, 200, content_type="application/json")
    if kind == "garbage":
        return Response("<html>welcome</html>", 200, content_type="text/html")
    return None


@contextmanager
def serving() -> Iterator[HTTPServer]:
    """Run a server. Scenes share it, because stopping it takes half a second."""
    with HTTPServer(threaded=True) as server:
        yield server
