"""Ensures that each payment header and payment method's name belongs to one plugin."""

from collections.abc import Collection
from typing import Any, Generic, TypeVar

from gateway.contracts.payments import split_header_name

X402_HEADER = "X-PAYMENT"
Owner = TypeVar("Owner")


class Owners(Generic[Owner]):
    """The headers and names that plugins have taken."""

    def __init__(self) -> None:
        self._headers: dict[str, Owner] = {}
        self._names: dict[str, Owner] = {}

    def take(self, owner: Owner, ways: Collection[Any]) -> tuple[str, Owner] | None:
        """Reserve the headers and names of a plugin's ways to pay.

        If another plugin has one of them, reserves nothing and returns it with its owner.
        """
        clash = self._find_clash(ways)
        if clash is None:
            for way in ways:
                self._headers |= dict.fromkeys(way.header_names, owner)
                if name := _name_of(way):
                    self._names[name] = owner
        return clash

    def _find_clash(self, ways: Collection[Any]) -> tuple[str, Owner] | None:
        for way in ways:
            for name in way.header_names:
                for other, owner in self._headers.items():
                    if _is_same(name, other):
                        return f"Payment header {name}", owner
            if (name := _name_of(way)) in self._names:
                return f"Payment method {name}", self._names[name]
        return None


def is_x402(verifier: Any) -> bool:
    """Whether a verifier takes the header that the gateway's pages and listings name."""
    return X402_HEADER in {name.upper() for name in verifier.header_names}


def _name_of(way: Any) -> str:
    """Return the name of a payment method; a verifier of signed payments has none."""
    return getattr(way, "name", "")


def _is_same(name: str, other: str) -> bool:
    """Whether two header names may match the same payment header."""
    (header, scheme), (header_2, scheme_2) = map(split_header_name, (name.lower(), other.lower()))
    return header == header_2 and (scheme == scheme_2 or "" in (scheme, scheme_2))
