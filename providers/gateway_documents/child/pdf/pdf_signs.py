"""Escapes what liteparse leaves of Markdown's signs, and undoes what it escapes in vain."""

import re
from collections.abc import Sequence

from liteparse import LayoutBlock

from gateway_documents.child import escaping

# A star between spaces, and a low line inside a word.
_NEEDLESS = re.compile(r"(?<=\s)\\(\*)(?=\s)|(?<=\w)\\(_)(?=\w)")
# Formulas and line breaks of cells stay; tags, entities and code are words of the page. Between
# two amounts, as in `$5 <b> $6`, is no formula.
_SIGN = re.compile(
    r"\$(?!\s)[^$\n]*[^$\s]\$(?!\d)|<br>|(?<!\\)(?:<(?=[A-Za-z/!?][^<>]*>)|&(?=#?\w{1,32};)|`)"
)
_FENCE = "```"


def escaped(markdown: str, blocks: Sequence[LayoutBlock]) -> str:
    """Return a page whose paragraphs start no heading, list or quote that is not on the page."""
    texts = {block.text for block in blocks if block.kind == "paragraph"}
    parts, is_code = [], False
    for part in markdown.split("\n\n"):
        is_code = is_code or (part.startswith(_FENCE) and part not in texts)
        parts.append(part if is_code else _paragraph(part, is_text=part in texts))
        is_code = is_code and not part.endswith(f"\n{_FENCE}")
    return "\n\n".join(parts)


def _paragraph(markdown: str, *, is_text: bool) -> str:
    signs = "<&`" if markdown.count("`") > 1 else "<&"
    text = _NEEDLESS.sub(lambda found: found[1] or found[2], markdown)
    text = _SIGN.sub(
        lambda found: f"\\{found[0]}" if found[0] in signs else found[0],
        text,
    )
    return escaping.starts(text) if is_text else text
