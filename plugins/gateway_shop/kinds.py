"""The kinds of offers, in the words of the pages."""

from collections.abc import Iterable, Sequence

import attrs

from gateway.domain import (
    DOCUMENT_EXTRACTION,
    DOCUMENT_PARSING,
    IMAGE_EDITING,
    TEXT_TO_IMAGE,
)


@attrs.frozen(kw_only=True)
class Kind:
    """A capability, as people read it."""

    capability: str
    # Of one offer.
    name: str
    # The heading above several offers, and the same inside a sentence.
    heading: str
    sold: str
    # The drawing beside an offer without an example.
    glyph: str = "picture"


_KINDS = (
    Kind(capability=TEXT_TO_IMAGE, name="Picture", heading="Pictures", sold="pictures"),
    Kind(
        capability=IMAGE_EDITING,
        name="Edited picture",
        heading="Edits of your pictures",
        sold="edits of your pictures",
    ),
    Kind(
        capability=DOCUMENT_PARSING,
        name="Document as text",
        heading="Documents as text",
        sold="documents as text",
        glyph="document",
    ),
    Kind(
        capability=DOCUMENT_EXTRACTION,
        name="Data of a document",
        heading="Data from documents",
        sold="data from documents",
        glyph="document",
    ),
)
_BY_CAPABILITY = {kind.capability: kind for kind in _KINDS}


def kind_of(capability: str) -> Kind:
    """Return the kind of a capability, also of a plugin's own, such as `text-to-speech`."""
    words = capability.replace("-", " ")
    own = Kind(
        capability=capability, name=words.capitalize(), heading=words.capitalize(), sold=words
    )
    return _BY_CAPABILITY.get(capability, own)


def order(capabilities: Iterable[str]) -> Sequence[Kind]:
    """Return the kinds of several offers, each once: the known ones first."""
    found = set(capabilities)
    known = [kind for kind in _KINDS if kind.capability in found]
    return [*known, *(kind_of(one) for one in sorted(found - _BY_CAPABILITY.keys()))]


def name_all(capabilities: Iterable[str]) -> str:
    """Return everything that is sold as the beginning of a sentence."""
    *others, last = (kind.sold for kind in order(capabilities))
    words = f"{', '.join(others)} and {last}" if others else last
    return words[0].upper() + words[1:]
