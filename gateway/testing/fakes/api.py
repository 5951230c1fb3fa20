"""How an author describes a vendor's API to the kit: which request submits, what each answer is."""
# ruff: noqa: ARG002 - authors override these, and use what they are given

import base64
import json
from collections.abc import Mapping
from typing import Any

import attrs

# A picture of 4 by 4 pixels; the gateway converts it to whatever format was asked for.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAFElEQVR42mOUi5rGAANMDEgANwcANUgBFjr6UDIAAAAASUVO"
    "RK5CYII="
)
MARKDOWN = "# A boat\n\nIt floats, and this text proves that the answer was read."


@attrs.frozen
class Reply:
    """One answer of the API: JSON (or text, or bytes), a status, headers."""

    body: Any = attrs.field(factory=dict)
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)

    @property
    def data(self) -> bytes:
        """The body as it is sent."""
        if isinstance(self.body, bytes):
            return self.body
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return text.encode()


@attrs.define
class Made:
    """What the fake API made; take it in whichever form the real one gives it."""

    host: str
    links: int = 0  # given so far; each is another address
    picture: bytes = PNG  # in some scenes it is none

    @property
    def data(self) -> bytes:
        """A picture, as bytes: a PNG."""
        return self.picture

    @property
    def base64(self) -> str:
        """The same, as Base64."""
        return base64.b64encode(self.picture).decode()

    @property
    def link(self) -> str:
        """An https address that leads to the picture; asked for again, a fresh one."""
        self.links += 1
        return f"https://{self.host}/made/{self.links}.png"

    @property
    def markdown(self) -> str:
        """The text of a document."""
        return MARKDOWN


@attrs.frozen(kw_only=True)
class Ask:
    """One request that the provider has sent to the fake API."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes = attrs.field(repr=False)
    url: str  # of the fake API, without a slash at its end: for addresses that it gives
    job: str  # the job that this asks about; for a submit, the one it may begin
    made: Made

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class FakeApi:
    """A vendor's API, answer by answer; subclass it from the vendor's documentation.

    An answer that the API does not have is named in `lacks`.
    """

    submit: str = ""
    """Which request has something made, and billed: `"POST /v1/pictures"`, a regular expression."""

    cancel: str = ""
    """Which request stops a job, in the same form; empty where there is none."""

    output_host: str = "outputs.example"
    """The host in `ask.made.link`, where the API's own matters to the provider."""

    lacks: tuple[str, ...] = ()
    """The answers that the API does not have: `("nothing", "failed")`."""

    def settings(self, url: str) -> dict[str, str]:
        """Return what an operator sets, by the names in gateway.toml: a key, and this address."""
        raise Undescribed("settings")

    def job_id(self, number: int) -> str:
        """Return the name of the n-th job, as the API would write it."""
        return f"00000000-0000-4000-8000-{number:012d}"

    def made(self, ask: Ask) -> Reply:
        """Answer with the result: a submit, or in a job API what asks about a job that is done."""
        raise Undescribed("made")

    def accepted(self, ask: Ask) -> Reply:
        """Of a job API: answer a submit with `ask.job`."""
        raise Undescribed("accepted")

    def waiting(self, ask: Ask) -> Reply:
        """Of a job API: answer that `ask.job` is not done."""
        raise Undescribed("waiting")

    def moderated(self, ask: Ask) -> Reply:
        """Refuse the content; of a job API, this is what became of the job."""
        raise Undescribed("moderated")

    def nothing(self, ask: Ask) -> Reply:
        """Answer with success and without a result, as many do where a filter struck."""
        raise Undescribed("nothing")

    def failed(self, ask: Ask) -> Reply:
        """Of a job API: answer that `ask.job` ended without a result, and not for its content."""
        raise Undescribed("failed")

    def lost(self, ask: Ask) -> Reply:
        """Of a job API: answer that it knows no such job."""
        return Reply({}, 404)

    def cancelled(self, ask: Ask) -> Reply:
        """Answer to `cancel`."""
        return Reply({})

    def limited(self, ask: Ask) -> Reply:
        """Ask to wait."""
        return Reply({}, 429, headers={"Retry-After": "7"})

    def account(self, ask: Ask) -> Reply:
        """Refuse the operator's key."""
        return Reply({}, 401)

    def broken(self, ask: Ask) -> Reply:
        """Be down for a moment, which leaves open whether a submit was taken."""
        return Reply("Service Unavailable", 503)

    def busy(self, ask: Ask) -> Reply:
        """Refuse a submit for a moment, in the way that the vendor documents as "not taken".

        The provider raises `NotAccepted`; few vendors have such an answer.
        """
        raise Undescribed("busy")

    def other(self, ask: Ask) -> Reply:
        """Answer what neither submits nor asks about a job: health, uploads."""
        return Reply({})


class Undescribed(Exception):
    """The author has not said what the API answers here."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Your FakeApi has no `{name}`: write it from the vendor's documentation, or name it "
            f"in `lacks` where the API has no such answer: lacks = ({name!r},)."
        )
