"""Acceptance of results: compares a provider's result with the order, before the task completes.

Declarations of capabilities (`built_in`) name these functions as `accept`. Each takes the offer,
the request and the result, and returns the result as it is kept. They raise `NotAsOrdered` for a
result that was not ordered, and `ResultUnusable` for one that cannot be kept.
"""

import math
import re
from typing import Any

import attrs
import msgspec

from gateway.domain.extraction import read_schema
from gateway.domain.kinds import PICTURE_TYPES
from gateway.domain.mismatches import find_mismatch, has_values
from gateway.domain.offers import Endpoint, GenerationRequest, Output, Result
from gateway.domain.words import has_words
from gateway.errors import NotAsOrdered, ResultUnusable

MAX_JSON_CHARS = 5_000_000
# JSON up to this length is compared with its schema. Built values take up to 20 times its size.
_MAX_CHECKED_CHARS = 1_000_000
JSON_TYPE = "application/json"
# Files whose pages everyone counts alike; a vendor may leave out the hidden slides of others.
_PAGED = (".pdf", ".tif", ".tiff")
_TEXT_TYPES = ("text/markdown", "text/plain")
# How far a picture's ratio may be from the ordered one. Models round sides to multiples of 16, 32
# or 64: 1152 x 896 for 4:3 differs by 3.6 %. The next ratio that vendors sell, 5:4, differs by 6 %.
_RATIO_TOLERANCE = 0.05
_RATIO = re.compile(r"([1-9][0-9]{0,3}):([1-9][0-9]{0,3})")
# An edit that keeps the ratio of its picture may have fewer pixels than the offer promises, if it
# is as long as a picture of 16:9 with these pixels: vendors also limit the longer side.
_LONG_RATIO = 16 / 9


def accept(endpoint: Endpoint, request: GenerationRequest, result: Result) -> Result:
    """Compare a checked result with the order, as its capability declares."""
    accepted: Result = endpoint.declaration.accept(endpoint, request, result)
    return accepted


def accept_pictures(endpoint: Endpoint, request: GenerationRequest, result: Result) -> Result:
    """Require the ordered ratio, pixels and format of every picture, as measured by the gateway."""
    for output in result.outputs:
        if not isinstance(output, Output) or not output.width or not output.height:
            raise NotAsOrdered("The provider's picture has no size.")
        _check_format(request, output)
        _check_ratio(request, output.width, output.height)
        _check_pixels(endpoint, request, output.width, output.height)
    return result


def _check_format(request: GenerationRequest, output: Output) -> None:
    wanted = PICTURE_TYPES.get(request.output_format or "")
    if wanted is not None and output.media_type != wanted:
        raise NotAsOrdered(f"The provider's picture is {output.media_type}; {wanted} was ordered.")


def _check_ratio(request: GenerationRequest, width: int, height: int) -> None:
    ordered = _RATIO.fullmatch(request.aspect_ratio or "")
    if ordered is None:
        return
    ratio = int(ordered[1]) / int(ordered[2])
    if abs(math.log(width / height / ratio)) > math.log1p(_RATIO_TOLERANCE):
        raise NotAsOrdered(
            f"The provider's picture has {width} x {height} pixels; "
            f"{request.aspect_ratio} was ordered."
        )


def _check_pixels(endpoint: Endpoint, request: GenerationRequest, width: int, height: int) -> None:
    least = endpoint.pixels_of(request)
    if width * height >= least:
        return
    is_own_ratio = request.attachment is not None and request.aspect_ratio is None
    if is_own_ratio and max(width, height) >= math.sqrt(least * _LONG_RATIO):
        return
    named = f"{request.resolution} was ordered, which is" if request.resolution else "the offer is"
    raise NotAsOrdered(
        f"The provider's picture has {width} x {height} pixels; {named} {least:,} or more."
    )


def accept_text(endpoint: Endpoint, request: GenerationRequest, result: Result) -> Result:  # noqa: ARG001 - one signature
    """Require words, and every page that the price was based on if the provider counts pages."""
    if not result.outputs and result.text is None:
        raise ResultUnusable("The provider returned nothing.")
    if not (has_words(result.text or "") or any(_replaces_text(result, o) for o in result.outputs)):
        raise NotAsOrdered("The provider found no text in the document.")
    ordered, read = request.pages, result.pages
    has_fixed_pages = request.attachment is not None and request.attachment.extension in _PAGED
    if has_fixed_pages and ordered is not None and read is not None and read < ordered:
        raise NotAsOrdered(f"The provider read {read:,} of the document's {ordered:,} pages.")
    return result


def _replaces_text(result: Result, output: object) -> bool:
    """Whether an output is a document instead of a text.

    A text without words is not replaced by the document's pictures, or by its pages as JSON.
    """
    if not isinstance(output, Output):
        return False
    if output.media_type in _TEXT_TYPES:
        return has_words(output.data.decode(errors="replace"))
    is_addition = output.media_type.startswith("image/") or output.media_type == JSON_TYPE
    return result.text is None or not is_addition


def accept_data(endpoint: Endpoint, request: GenerationRequest, result: Result) -> Result:  # noqa: ARG001 - one signature
    """Require a JSON object with a value, which follows the schema in the prompt if there is one.

    A field without a value may be null or missing, even if the schema requires it: documents do not
    have every field.
    """
    text = result.text or ""
    if not text or result.outputs:
        raise ResultUnusable("The provider returned no JSON.")
    if len(text) > MAX_JSON_CHARS:
        raise ResultUnusable("The JSON was made, but is longer than what is sold.")
    found = _read_object(text)
    if not has_values(found):
        raise NotAsOrdered("The provider found no data in the document.")
    schema = _schema_of(request)
    if schema is not None and len(text) <= _MAX_CHECKED_CHARS:
        mismatch = find_mismatch(found, schema)
        if mismatch is not None:
            raise NotAsOrdered(f"The provider's JSON does not follow the schema: {mismatch}.")
    return attrs.evolve(result, text_media_type=JSON_TYPE)


def _read_object(text: str) -> dict[str, Any]:
    """Parse a JSON object. The fields of a long one are parsed but not built: they stay text."""
    kind: Any = dict[str, Any] if len(text) <= _MAX_CHECKED_CHARS else dict[str, msgspec.Raw]
    try:
        found: dict[str, Any] = msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise ResultUnusable("The provider returned something else than a JSON object.") from None
    return {
        name: bytes(value).strip() != b"null" or None if isinstance(value, msgspec.Raw) else value
        for name, value in found.items()
    }


def _schema_of(request: GenerationRequest) -> dict[str, Any] | None:
    """Return the schema in the prompt, which was checked before payment."""
    try:
        return read_schema(request.prompt)
    except ValueError:
        return None
