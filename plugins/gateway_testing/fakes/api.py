"""The kit's description of a vendor's API: which request submits, and every response."""
# ruff: noqa: ARG002 - overrides use the arguments

import base64
import json
import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import attrs

from gateway.domain import Endpoint, GenerationRequest

# A picture of 4 by 4 pixels. The gateway converts it to the requested format.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAFElEQVR42mOUi5rGAANMDEgANwcANUgBFjr6UDIAAAAASUVO"
    "RK5CYII="
)


def picture_of(width: int, height: int) -> bytes:
    """Return a PNG of vertical black and white stripes; 16 megapixels take 20 ms."""
    row = b"\0" + b"\xf0" * ((width + 7) // 8)
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(row * height, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


# The extracted data of a document. The number appears nowhere else.
EXTRACTED = {"title": "A boat", "length": 20731}
MARKDOWN = "# A boat\n\nIt floats, and this text proves that the answer was read."


@attrs.frozen
class Reply:
    """One response of the API: JSON (or text, or bytes), a status, headers."""

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
    """The fake API's result. Put it into your responses in the vendor's form."""

    host: str
    links: int = 0
    """How many links were given; each has its own URL."""
    picture: bytes = PNG
    """A PNG as the newest purchase ordered it; in some scenes it is not a picture."""

    @property
    def data(self) -> bytes:
        """The picture as bytes."""
        return self.picture

    @property
    def base64(self) -> str:
        """The picture as Base64."""
        return base64.b64encode(self.picture).decode()

    def follow(self, endpoint: Endpoint, request: GenerationRequest) -> None:
        """Make the picture that an order asks for: its ratio, and no more pixels than needed."""
        across, _, down = (request.aspect_ratio or "1:1").partition(":")
        ratio = int(across) / int(down) if across.isdecimal() and down.isdecimal() else 1.0
        height = max(64.0, math.sqrt(endpoint.pixels_of(request) / ratio))
        self.picture = picture_of(math.ceil(height * ratio), math.ceil(height))

    @property
    def link(self) -> str:
        """A new https URL of the picture each time."""
        self.links += 1
        return f"https://{self.host}/made/{self.links}.png"

    @property
    def markdown(self) -> str:
        """The text of a document."""
        return MARKDOWN

    @property
    def extracted(self) -> dict[str, Any]:
        """The data of a document as an object; some vendors return it as JSON text."""
        return dict(EXTRACTED)


@attrs.frozen(kw_only=True)
class Ask:
    """One request from the provider to the fake API."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Values by lower-case name."""
    body: bytes = attrs.field(repr=False)
    url: str
    """The fake API's URL without a trailing slash, for the URLs in its responses."""
    job: str
    """The id of the job that the request names; of a submit, the job that it may start."""
    made: Made

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class FakeApi:
    """A vendor's API, response by response. Subclass it from the vendor's documentation.

    List the responses that the API does not have in `lacks`.
    """

    submit: str = ""
    """The request that makes the vendor produce and bill:

    `"POST /v1/pictures"`, a regular expression.
    """

    cancel: str = ""
    """The request that cancels a job, in the same form. Empty: there is none."""

    poll: str = ""
    """The requests that poll a job, in the same form. Empty: any that names a job."""

    others: str = ""
    """Other requests of the API, such as health checks and uploads, in the same form.

    Requests that match nothing get `unknown`. Empty: they get `other`.
    """

    output_host: str = "outputs.example"
    """The host in `ask.made.link`, for a provider that expects a certain host."""

    lacks: tuple[str, ...] = ()
    """The responses that the API does not have: `("nothing", "failed")`."""

    def settings(self, url: str) -> dict[str, str]:
        """Return the operator's settings by their gateway.toml names: a key, and this URL."""
        raise Undescribed("settings")

    def job_id(self, number: int) -> str:
        """Return the id of the n-th job, in the API's format."""
        return f"00000000-0000-4000-8000-{number:012d}"

    def made(self, ask: Ask) -> Reply:
        """Return the result: for a submit, or in a job API for a poll of a finished job."""
        raise Undescribed("made")

    def accepted(self, ask: Ask) -> Reply:
        """Job API: accept a submit with `ask.job`."""
        raise Undescribed("accepted")

    def waiting(self, ask: Ask) -> Reply:
        """Job API: respond that `ask.job` is not done."""
        raise Undescribed("waiting")

    def moderated(self, ask: Ask) -> Reply:
        """Refuse the content; in a job API, as the end of the job."""
        raise Undescribed("moderated")

    def nothing(self, ask: Ask) -> Reply:
        """Respond with success but no result, as many vendors do after a filter."""
        raise Undescribed("nothing")

    def failed(self, ask: Ask) -> Reply:
        """Job API: respond that `ask.job` failed for a reason other than its content."""
        raise Undescribed("failed")

    def lost(self, ask: Ask) -> Reply:
        """Job API: respond that the job is unknown."""
        return Reply({}, 404)

    def cancelled(self, ask: Ask) -> Reply:
        """Respond to `cancel`."""
        return Reply({})

    def limited(self, ask: Ask) -> Reply:
        """Rate-limit the provider."""
        return Reply({}, 429, headers={"Retry-After": "7"})

    def account(self, ask: Ask) -> Reply:
        """Refuse the operator's key."""
        return Reply({}, 401)

    def broken(self, ask: Ask) -> Reply:
        """Respond with a server error, which leaves open whether the vendor took a submit."""
        return Reply("Service Unavailable", 503)

    def busy(self, ask: Ask) -> Reply:
        """Refuse a submit in a way that the vendor documents as "not taken".

        The provider raises `NotAccepted`; few vendors have such a response.
        """
        raise Undescribed("busy")

    def other(self, ask: Ask) -> Reply:
        """Respond to a request that neither submits nor names a job: health, uploads."""
        return Reply({}) if self.others else self.unknown(ask)

    def unknown(self, ask: Ask) -> Reply:
        """Respond to a path that the API does not have."""
        return Reply({}, 404)


class Undescribed(Exception):
    """The author's FakeApi lacks a response that a scene needs."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Your FakeApi has no `{name}`: write it from the vendor's documentation, or name it "
            f"in `lacks` if the API has no such answer: lacks = ({name!r},)."
        )
