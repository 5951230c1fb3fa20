"""Fetches the file that `fileUrl` names, for a stranger who has not paid yet.

The guards are those of links in vendors' answers: https, public addresses, the address that was
checked is connected to, no other host. On top of them few files are fetched at a time.
"""

import contextlib
import ssl
from collections import Counter
from collections.abc import Iterator

from gateway.domain import MAX_FILE_BYTES
from gateway.errors import (
    ExecutionError,
    LinkDead,
    PayloadTooLarge,
    ResultUnusable,
    ValidationError,
)
from gateway.vendors import Outbound

# Files that are fetched at the same time: in all, and for one address.
_MOST = 4
_MOST_PER_ADDRESS = 2
_FETCH_S = 20.0
_MAX_URL_CHARS = 2048


class LinkedFiles:
    """Fetches files by their addresses, a few at a time."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, fetch_s: float = _FETCH_S) -> None:
        self._outbound = Outbound("", max_bytes=MAX_FILE_BYTES, tls=tls)
        self._fetch_s = fetch_s
        self._by_address: Counter[str] = Counter()

    async def fetch(self, url: str, address: str) -> bytes:
        """Return the file at a public https address, fetched for a client.

        Raises `ValidationError` where it cannot be fetched, and `ExecutionError` where too many
        files are being fetched. The sentence does not say why: it would tell a stranger what the
        gateway's network reaches.
        """
        if len(url) > _MAX_URL_CHARS:
            raise ValidationError(f"fileUrl must have up to {_MAX_URL_CHARS:,} characters.")
        with self._counted(address):
            try:
                return await self._outbound.download(url, timeout_s=self._fetch_s)
            except LinkDead:
                raise ValidationError(
                    "The file at fileUrl cannot be fetched. It must be public, at an https "
                    "address that leads to no other host, and arrive within "
                    f"{self._fetch_s:g} seconds. Nothing was charged."
                ) from None
            except ResultUnusable:
                raise PayloadTooLarge("The file is larger than 7.5 MB.") from None

    @contextlib.contextmanager
    def _counted(self, address: str) -> Iterator[None]:
        is_full = self._by_address.total() >= _MOST
        if is_full or self._by_address[address] >= _MOST_PER_ADDRESS:
            raise ExecutionError(
                "Too many files are being fetched; nothing was charged. Try again in a while."
            )
        self._by_address[address] += 1
        try:
            yield
        finally:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    async def close(self) -> None:
        """Close all connections."""
        await self._outbound.close()
