"""The kinds of offers, in the words of the pages."""

from collections.abc import Iterable, Sequence

import attrs

from gateway.domain import Capability, Endpoint
from gateway.domain.capabilities import DECLARED


@attrs.frozen(kw_only=True)
class Kind:
    """A capability, as people read it."""

    capability: str
    # Of one offer.
    name: str
    # The heading above several offers.
    heading: str
    # The drawing beside an offer without an example.
    glyph: str = "picture"

    @property
    def sold(self) -> str:
        """The heading inside a sentence."""
        return self.heading[0].lower() + self.heading[1:]


def kind_of(endpoint: Endpoint) -> Kind:
    """Return the kind of an offer, also of one that nothing declares, such as `text-to-speech`."""
    return _kind(endpoint.declaration)


def _kind(declared: Capability) -> Kind:
    words = declared.name.replace("-", " ").capitalize()
    return Kind(
        capability=declared.name,
        name=declared.title or words,
        heading=declared.heading or declared.title or words,
        glyph="picture" if declared.shown in ("picture", None) else "document",
    )


def order(kinds: Iterable[Kind]) -> Sequence[Kind]:
    """Return the kinds of several offers, each once: the built-in ones first."""
    known = list(DECLARED)
    last = len(known)

    def rank(kind: Kind) -> tuple[int, str]:
        is_known = kind.capability in DECLARED
        return known.index(kind.capability) if is_known else last, kind.capability

    return sorted({kind.capability: kind for kind in kinds}.values(), key=rank)


def name_all(kinds: Iterable[Kind]) -> str:
    """Return everything that is sold as the beginning of a sentence."""
    *others, last = (kind.sold for kind in order(kinds))
    words = f"{', '.join(others)} and {last}" if others else last
    return words[0].upper() + words[1:]
