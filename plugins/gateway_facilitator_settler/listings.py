"""How the facilitator's Bazaar lists each endpoint, from the header `EXTENSION-RESPONSES`.

The header is Base64 of JSON, such as `{"bazaar": {"status": "rejected", "rejectedReason": "…"}}`.
It is shown to the operator only, and no payment depends on it.
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
    """The latest status of one endpoint."""

    status: str
    reason: str

    def __str__(self) -> str:
        return f"{self.status} ({self.reason})" if self.reason else self.status


class Listings:
    """The latest status of each endpoint since the start. Changes are logged."""

    def __init__(self) -> None:
        # By slug. The number of endpoints bounds it.
        self._known: dict[str, Listing] = {}

    def note(self, slug: str, header: str) -> None:
        """Record the status in a response's header, if it has one."""
        found = read(header)
        if found is None or found == self._known.get(slug):
            return
        self._known[slug] = found
        write = _log.warning if found.status == "rejected" else _log.info
        write("facilitator.listing", slug=slug, status=found.status, reason=found.reason)

    def __str__(self) -> str:
        return "; ".join(f"{slug} {known}" for slug, known in sorted(self._known.items()))


def read(header: str) -> Listing | None:
    """Return the Bazaar's status from the header; None if it is missing or malformed."""
    if not header or len(header) > _MAX_CHARS:
        return None
    try:
        decoded = json.loads(base64.b64decode(header, validate=True))
    except (ValueError, RecursionError):
        return None
    bazaar = decoded.get(BAZAAR) if isinstance(decoded, dict) else None
    if not isinstance(bazaar, dict) or not _text(bazaar, "status"):
        return None
    reason = _text(bazaar, "rejectedReason") or _text(bazaar, "rejectionReason")
    return Listing(_text(bazaar, "status"), reason)


def _text(fields: Mapping[str, Any], name: str) -> str:
    """Return a text field's printable characters; empty for any other type."""
    value = fields.get(name)
    text = value[:_MAX_TEXT_CHARS] if isinstance(value, str) else ""
    return "".join(character for character in text if character.isprintable())
