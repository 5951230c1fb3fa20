"""Checks of a declaration, beyond the types of its keys: each mistake is one sentence."""

import json
import math
import re
from urllib.parse import urlsplit

from gateway import SettingsError
from gateway_http.declarations import MAKE_PICTURES, RATIOS, Declaration, JobPlaces, Made
from gateway_http.shapes import is_path, refuse_places, with_secrets

# How far the rounded sides may be from a ratio. The gateway refuses pictures beyond 5 %.
_RATIO_TOLERANCE = 0.04
_MIN_STATUS, _MAX_STATUS = 400, 499
_MAX_PROMPT_CHARS = 10_000
# By RFC 9110; of a value what the client sends.
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SENDABLE = re.compile(r"[!-~]+([ \t]+[!-~]+)*")
_MEDIA = ("image/", "audio/", "video/")
_BEGINS: dict[Made, str] = {"picture": "image/", "sound": "audio/", "video": "video/"}


def check_declaration(one: Declaration) -> None:
    """Raise `SettingsError` for the first mistake, without the full stop."""
    _check_request(one)
    _check_body(one)
    _check_file(one)
    _check_result(one)
    _check_made(one)
    _check_numbers(one)
    if one.job is not None:
        _check_job(one.job)
    _check_sizes(one)
    if one.health:
        _check_address("health", one.health)
    if any(not _MIN_STATUS <= status <= _MAX_STATUS for status in one.invalid):
        raise SettingsError("invalid lists statuses from 400 to 499")
    if not all(one.refused):
        raise SettingsError("refused has an empty text, which every prompt contains")


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
    for name, value in request.headers.items():
        _check_header(name, value)


def _check_header(name: str, value: str) -> None:
    where = f"request.headers.{name}"
    refuse_places(where, name + value)
    if not _HEADER.fullmatch(name) or not _SENDABLE.fullmatch(with_secrets(where, value)):
        raise SettingsError(
            f"{where!r} cannot be sent: a name has letters, digits and -, and a value is one line"
        )


def _check_body(one: Declaration) -> None:
    request = one.request
    if (request.json is None) == (not request.form and not request.file_field):
        raise SettingsError("request needs either json or form")
    try:
        json.dumps([request.json, request.form], allow_nan=False)
    except (TypeError, ValueError):
        raise SettingsError(
            "request has a date, a time, inf or nan, which JSON cannot express: write it as a text"
        ) from None
    for name, value in request.form.items():
        if not isinstance(value, str | int | float):
            raise SettingsError(f"request.form.{name} is no text, number, true or false")


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


def _check_made(one: Declaration) -> None:
    """Check the result against what the capability makes, as far as that is known here."""
    kind, media_type = one.result.kind, one.result.media_type
    if kind == "text" and media_type.startswith(_MEDIA):
        raise SettingsError(f"a result of the kind text is no {media_type}")
    known: Made | None = "picture" if one.capability in MAKE_PICTURES else None
    made = one.declares.result if one.declares is not None else known
    is_right = kind == made if made in ("text", "json") else kind in ("file", "base64", "link")
    begin = _BEGINS.get(made, "") if made is not None else ""
    if made is not None and not (is_right and media_type.startswith(begin)):
        raise SettingsError(
            f"{one.capability} makes {made}, which result has not: its kind and media_type differ"
        )


def _check_numbers(one: Declaration) -> None:
    if not 0 < one.timeout_s < math.inf:
        raise SettingsError("timeout_s is no number of seconds above 0")
    if one.at_once < 0 or (one.per_minute is not None and one.per_minute < 1):
        raise SettingsError("at_once is 0 or more, and per_minute 1 or more")
    if not 1 <= one.max_prompt_chars <= _MAX_PROMPT_CHARS:
        raise SettingsError(f"max_prompt_chars is not 1 to {_MAX_PROMPT_CHARS:,}")
    if one.max_pages is not None and one.max_pages < 1:
        raise SettingsError("max_pages is not 1 or more")


def _check_job(job: JobPlaces) -> None:
    _check_address("job.poll", job.poll, with_id=True)
    for name, path in (("id", job.id), ("state", job.state), ("progress", job.progress)):
        if not is_path(path) and (path or name != "progress"):
            raise SettingsError(f"job.{name} {path!r} is no path such as data.status")
    if not job.done or set(job.done) & set(job.failed):
        raise SettingsError("job.done and job.failed list different states of a job")
    if not 0 < job.progress_of < math.inf:
        raise SettingsError("job.progress_of is no number above 0")


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
