"""The rows of `gateway check`, and their three results."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import attrs

from gateway.contracts.outputs import OutputStoreUnavailable
from gateway.errors import BackupFailed, ChainUnavailable, GatewayError, SettingsError

# Errors by which a check fails.
_WRONG = (GatewayError, SettingsError, BackupFailed, OutputStoreUnavailable, ValueError, OSError)
Result = Literal["ok", "note", "wrong"]


class Note(str):
    """A check's sentence about something to do, which stops no sale."""

    __slots__ = ()


@attrs.frozen(kw_only=True)
class Row:
    """The result of one check. A note stops no sale, and does not change the exit code."""

    name: str
    result: Result
    found: str

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.result != "wrong"

    def as_dict(self) -> dict[str, Any]:
        """Return the row for `--json`."""
        return {"name": self.name, "ok": self.ok, "result": self.result, "found": self.found}


async def make_row(name: str, check_one: Callable[[], Awaitable[str]]) -> Row:
    """Run a check: a `Note` is a note, and an error is wrong."""
    try:
        found = await check_one()
    except _WRONG as error:
        details = getattr(error, "details", None)
        text = f"{error} ({details})" if details else str(error)
        if isinstance(error, ChainUnavailable):
            # Its own words are for buyers.
            text = f"the chain does not answer: {details or error.message}"
        return Row(name=name, result="wrong", found=text)
    return Row(name=name, result="note" if isinstance(found, Note) else "ok", found=str(found))
