"""The declaration of an endpoint: one TOML file of the operator's folder."""

from typing import Any, Literal

import msgspec

from gateway import PICTURES
from gateway.domain.capabilities import DECLARED
from gateway_http.shapes import places_in

RATIOS = ("1:1", "4:3", "3:4", "16:9", "9:16")
# Of the square, without `sizes`.
_SIDE = 1024

Kind = Literal["file", "base64", "link", "text", "json"]
Content = Literal["picture", "document", "sound", "video"]
Made = Literal["picture", "text", "json", "sound", "video"]
# The capabilities of the core that make pictures, which the gateway converts.
MAKE_PICTURES = frozenset(one.name for one in DECLARED.values() if PICTURES in one.results)
UnitName = Literal["second", "megapixel", "1,000 characters"]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file. An unknown key is a mistake."""


class Request(_Table, frozen=True, kw_only=True):
    """The request that generates."""

    url: str
    method: Literal["POST", "PUT"] = "POST"
    headers: dict[str, str] = {}
    # The shape of a JSON body, or the fields of a form; never both.
    json: Any = None
    form: dict[str, Any] = {}
    # The field of the form with the buyer's file.
    file_field: str = ""


class JobPlaces(_Table, frozen=True, kw_only=True):
    """How a submitted job is polled."""

    # Path of the job's id in the response to the request.
    id: str
    # The address to poll, with `{id}`, and the path of the state in its JSON.
    poll: str
    state: str
    done: tuple[str, ...]
    failed: tuple[str, ...] = ()
    # Path of a number, and its value at the end.
    progress: str = ""
    progress_of: float = 1.0


class ResultPlace(_Table, frozen=True, kw_only=True):
    """Where the result is."""

    kind: Kind
    path: str = ""
    # The address of a finished job's file, with `{id}`.
    get: str = ""
    media_type: str = ""


class EachUnit(_Table, frozen=True, kw_only=True):
    """A price for each unit of a file or a prompt."""

    unit: UnitName
    price: str
    most: int
    step: int = 1
    cost: str = ""


class Declares(_Table, frozen=True, kw_only=True):
    """The declaration of a capability that no plugin declares."""

    result: Made
    file: Content | None = None
    prompt: Literal["required", "optional", "absent"] = "required"
    title: str = ""
    heading: str = ""
    about: str = ""


class Declaration(_Table, frozen=True, kw_only=True):
    """One endpoint."""

    title: str
    capability: str
    price: str
    request: Request
    result: ResultPlace
    job: JobPlaces | None = None
    description: str = ""
    model: str = ""
    # US dollars for one generation.
    cost: str = ""
    # Prices by resolution, beside the first one's.
    prices: dict[str, str] = {}
    price_per_page: str = ""
    max_pages: int | None = None
    unit_price: EachUnit | None = None
    # The side of the square with as many pixels, by resolution. The first is the default.
    sizes: dict[str, int] = {}
    ratios: tuple[str, ...] = RATIOS
    # The sides of a picture are multiples of it.
    step: int = 16
    files: tuple[str, ...] = ()
    max_prompt_chars: int = 10_000
    # Texts that a prompt may not contain.
    refused: tuple[str, ...] = ()
    timeout_s: float = 120.0
    at_once: int = 1
    per_minute: int | None = None
    # The operator's word that a repeated request bills nothing.
    free_to_repeat: bool = False
    # Statuses that mean that the buyer's input is wrong.
    invalid: tuple[int, ...] = ()
    health: str = ""
    declares: Declares | None = None

    @property
    def places(self) -> set[str]:
        """The places in the body of the request."""
        return places_in(self.request.json) | places_in(self.request.form)

    @property
    def technical(self) -> "Declaration":
        """The declaration without its offer: the same server is asked in the same way."""
        return msgspec.structs.replace(
            self,
            title="",
            description="",
            model="",
            price="",
            cost="",
            prices={},
            price_per_page="",
            max_pages=None,
            unit_price=None,
            max_prompt_chars=0,
            timeout_s=0.0,
            declares=None,
        )

    def size_of(self, resolution: str | None, ratio: str | None) -> tuple[int, int]:
        """Return width and height of a picture: the ratio at the pixels of the resolution.

        Raises `KeyError` for a resolution that is not in the file, or not any more.
        """
        side = self.sizes[resolution or ""] if self.sizes else _SIDE
        across, down = map(int, (ratio or self.ratios[0]).split(":"))
        scale = side / (across * down) ** 0.5 / self.step
        return tuple(max(round(part * scale), 1) * self.step for part in (across, down))
