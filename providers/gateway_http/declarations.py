"""The declaration of an endpoint: one TOML file of the operator's folder, read and checked."""

import tomllib
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from gateway import SettingsError
from gateway_http.shapes import is_path, places_in, refuse_places, with_secrets

_MANUAL = "docs/http-endpoints.md lists every key."
RATIOS = ("1:1", "4:3", "3:4", "16:9", "9:16")
# How far the rounded sides may be from a ratio. The gateway refuses pictures beyond 5 %.
_RATIO_TOLERANCE = 0.04
_MIN_STATUS, _MAX_STATUS = 400, 499
# Of the square, without `sizes`.
_SIDE = 1024

Kind = Literal["file", "base64", "link", "text", "json"]
Content = Literal["picture", "document", "sound", "video"]
Made = Literal["picture", "text", "json", "sound", "video"]
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


def read_folder(folder: str) -> dict[str, Declaration]:
    """Return the declarations of a folder by slug, which is a file's name.

    Raises `SettingsError` with one sentence that names the file and the mistake.
    """
    place = Path(folder)
    if not place.is_dir():
        raise SettingsError(
            f"GATEWAY_HTTP_ENDPOINTS names {folder}, which is no folder. Example: "
            "GATEWAY_HTTP_ENDPOINTS=endpoints"
        )
    return {path.stem: read_file(path) for path in sorted(place.glob("*.toml"))}


def read_file(path: Path) -> Declaration:
    """Return the declaration in a file; raises `SettingsError`."""
    try:
        found = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Declaration)
        _check(found)
    except OSError as error:
        raise SettingsError(f"{path.name} cannot be read: {error.strerror}.") from None
    except msgspec.ValidationError as error:
        reason = str(error).replace(" - at `$.", " - at `").removesuffix(" - at `$`")
        raise SettingsError(f"{path.name} is not right: {reason}. {_MANUAL}") from None
    except (ValueError, SettingsError) as error:
        raise SettingsError(f"{path.name} is not right: {error}. {_MANUAL}") from None
    return found


def _check(one: Declaration) -> None:
    """Raise `SettingsError` for the first mistake, without the full stop."""
    _check_request(one)
    _check_file(one)
    _check_result(one)
    if one.job is not None:
        _check_job(one.job)
    _check_sizes(one)
    if one.health:
        _check_address("health", one.health)
    if any(not _MIN_STATUS <= status <= _MAX_STATUS for status in one.invalid):
        raise SettingsError("invalid lists statuses from 400 to 499")


def _check_request(one: Declaration) -> None:
    request = one.request
    refuse_places("request.url", request.url)
    try:
        url = urlsplit(request.url)
        is_right = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_right = False
    is_plain = request.url.isprintable() and not any(mark in request.url for mark in "@# ")
    if not (is_right and is_plain):
        raise SettingsError(
            "request.url is no address such as http://127.0.0.1:8880/v1/audio/speech; a password "
            "belongs into request.headers"
        )
    if (request.json is None) == (not request.form and not request.file_field):
        raise SettingsError("request needs either json or form")
    for name, value in request.headers.items():
        refuse_places(f"request.headers.{name}", name + value)
        with_secrets(f"request.headers.{name}", value)


def _check_file(one: Declaration) -> None:
    takes_file = one.places & {"file_base64", "file_name"} or one.request.file_field
    if takes_file and not one.files:
        raise SettingsError('request sends a file, but files is empty: files = [".wav", ".mp3"]')
    if one.files and not (one.request.file_field or "file_base64" in one.places):
        raise SettingsError("files are taken, but neither request.file_field nor {file_base64} is")
    if not one.places and not one.files:
        raise SettingsError("request has no place for a value of the buyer, such as {prompt}")
    if one.request.file_field and one.request.json is not None:
        raise SettingsError("request.file_field is for a form; JSON has the place {file_base64}")


def _check_result(one: Declaration) -> None:
    result = one.result
    if result.kind == "file":
        if result.path:
            raise SettingsError("result.path is for an answer in JSON; a file is the whole answer")
        if (one.job is None) == bool(result.get):
            raise SettingsError("result.get names the address of a job's file, and only of a job's")
    elif not is_path(result.path):
        raise SettingsError(f"result.path {result.path!r} is no path such as images[0].data")
    elif result.get:
        raise SettingsError("result.get is for the kind file")
    if result.get:
        _check_address("result.get", result.get, with_id=True)
    if result.kind in ("file", "base64", "link") and "/" not in result.media_type:
        raise SettingsError('result.media_type is missing: such as "image/png"')


def _check_job(job: JobPlaces) -> None:
    _check_address("job.poll", job.poll, with_id=True)
    for name, path in (("id", job.id), ("state", job.state), ("progress", job.progress)):
        if not is_path(path) and (path or name != "progress"):
            raise SettingsError(f"job.{name} {path!r} is no path such as data.status")
    if not job.done or set(job.done) & set(job.failed):
        raise SettingsError("job.done and job.failed list different states of a job")
    if job.progress_of <= 0:
        raise SettingsError("job.progress_of is not more than 0")


def _check_address(where: str, path: str, *, with_id: bool = False) -> None:
    """Check an address of the same server. Only a job's id is filled in."""
    refuse_places(where, path, allowed=("id",) if with_id else ())
    if not path.startswith("/") or not path.isprintable() or "#" in path:
        raise SettingsError(f"{where} {path!r} is no path such as /v1/jobs, on the server of url")
    if with_id and "{id}" not in path:
        raise SettingsError(f"{where} lacks {{id}}, the id of the job")


def _check_sizes(one: Declaration) -> None:
    if one.step < 1 or any(side < 1 for side in one.sizes.values()):
        raise SettingsError("step and sizes are whole numbers of 1 or more")
    if one.sizes and not one.places & {"width", "height"}:
        raise SettingsError("sizes are offered, but request has no place {width} or {height}")
    if not one.ratios or set(one.ratios) - set(RATIOS):
        raise SettingsError(f"ratios are of {', '.join(RATIOS)}")
    for resolution in one.sizes or ("",):
        for ratio in one.ratios:
            width, height = one.size_of(resolution, ratio)
            across, down = map(int, ratio.split(":"))
            if abs(width * down / (height * across) - 1) > _RATIO_TOLERANCE:
                raise SettingsError(
                    f"with step {one.step}, {ratio} would be {width} x {height} pixels, which is "
                    "another ratio: choose a smaller step, or leave the ratio out of ratios"
                )
