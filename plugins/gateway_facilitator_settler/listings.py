"""What the facilitator's Bazaar said about listing each endpoint: its `EXTENSION-RESPONSES`.

The header is Base64 of JSON, such as `{"bazaar": {"status": "rejected", "rejectedReason": "…"}}`.
It is for the operator: the buyer never sees it, and no payment depends on it.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

import attrs
import structlog

from gateway.domain.listing import BAZAAR

HEADER = "EXTENSION-RESPONSES"
_MAX_CHARS = 8_192
_MAX_TEXT_CHARS = 200
_log = structlog.get_logger()


@attrs.frozen
class Listing:
    """The last word about one endpoint, as the facilitator wrote it."""

    status: str
    reason: str

    def __str__(self) -> str:
        return f"{self.status} ({self.reason})" if self.reason else self.status


class Listings:
    """The last word about each endpoint since the start; logs each one that differs."""

    def __init__(self) -> None:
        # By slug: as many as were ever sold.
        self._known: dict[str, Listing] = {}

    def note(self, slug: str, header: str) -> None:
        """Keep what the header of an answer says about an endpoint, if it says anything."""
        found = read(header)
        if found is None or found == self._known.get(slug):
            return
        self._known[slug] = found
        write = _log.warning if found.status == "rejected" else _log.info
        write("facilitator.listing", slug=slug, status=found.status, reason=found.reason)

    def __str__(self) -> str:
        return "; ".join(f"{slug} {known}" for slug, known in sorted(self._known.items()))


def read(header: str) -> Listing | None:
    """Return what the header says about the Bazaar; None if it says nothing that can be read."""
    if not header or len(header) > _MAX_CHARS:
        return None
    try:
        said = json.loads(base64.b64decode(header, validate=True))
    except (ValueError, RecursionError):
        return None
    bazaar = said.get(BAZAAR) if isinstance(said, dict) else None
    if not isinstance(bazaar, dict) or not _text(bazaar, "status"):
        return None
    reason = _text(bazaar, "rejectedReason") or _text(bazaar, "rejectionReason")
    return Listing(_text(bazaar, "status"), reason)


def _text(said: Mapping[str, Any], name: str) -> str:
    """Return a field's printable characters, or nothing for another type."""
    value = said.get(name)
    text = value[:_MAX_TEXT_CHARS] if isinstance(value, str) else ""
    return "".join(character for character in text if character.isprintable())
