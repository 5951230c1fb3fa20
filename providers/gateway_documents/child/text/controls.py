"""Control characters, which a document does not show."""

import re

# Tab to carriage return, escape and DEL occur in text files; NEL to U+009F do not.
NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffe\uffff]")
# Characters that XML forbids, written as they are or as references.
NOT_XML = re.compile(
    rb"[\x01-\x08\x0b\x0c\x0e-\x1f]"
    rb"|&#(?:0*(?:[1-8]|1[124-9]|2\d|3[01])|[xX]0*(?:[1-8bcefBCEF]|1[\da-fA-F]));"
)
# Databases refuse NUL, and JSON writes most of the others with six characters. U+FDD0 and the
# following noncharacters are for marks of this package.
_NOT_SHOWN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ufdd0-\ufdef\ufffe\uffff]")
_BREAKS = re.compile(r"[\v\f]")


def removed(text: str) -> str:
    """Return Markdown with tabs and line feeds only; other breaks between words become spaces."""
    return _BREAKS.sub(" ", _NOT_SHOWN.sub("", text))
