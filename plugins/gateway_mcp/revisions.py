"""Removes the fields of a message that the negotiated protocol revision lacks.

Clients of the official SDKs reject a whole result for one unknown kind of content, after they have
paid.
"""

from collections.abc import Mapping
from typing import Any

# Revisions are dates, so they compare as texts. Each is named for its additions.
_ANNOTATIONS_AND_AUDIO = "2025-03-26"
_TITLES_LINKS_AND_STRUCTURE = "2025-06-18"
_WEBSITE = "2025-11-25"
_EXTENSIONS = "2026-07-28"


def convert(revision: str, method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the result of a method to a revision."""
    reduced = dict(result)
    if method == "tools/call" and revision < _TITLES_LINKS_AND_STRUCTURE:
        reduced.pop("structuredContent", None)
        known = [one for one in reduced.get("content", ()) if _knows(revision, one)]
        reduced["content"] = list(map(_link_as_text, known))
    elif method == "tools/list":
        unknown = _unknown_of_tools(revision)
        reduced["tools"] = [_without(tool, unknown) for tool in reduced.get("tools", ())]
    elif method == "initialize":
        unknown = _unknown_of_servers(revision)
        reduced["serverInfo"] = _without(reduced.get("serverInfo", {}), unknown)
        if revision < _EXTENSIONS:
            reduced["capabilities"] = _without(reduced.get("capabilities", {}), ("extensions",))
    return reduced


def _unknown_of_tools(revision: str) -> tuple[str, ...]:
    later = ("title", "_meta") if revision < _TITLES_LINKS_AND_STRUCTURE else ()
    return later if revision >= _ANNOTATIONS_AND_AUDIO else (*later, "annotations")


def _unknown_of_servers(revision: str) -> tuple[str, ...]:
    later = ("description", "icons", "websiteUrl") if revision < _WEBSITE else ()
    return later if revision >= _TITLES_LINKS_AND_STRUCTURE else (*later, "title")


def _knows(revision: str, block: Mapping[str, Any]) -> bool:
    # The link of a sound stays.
    return block.get("type") != "audio" or revision >= _ANNOTATIONS_AND_AUDIO


def _link_as_text(block: Mapping[str, Any]) -> Mapping[str, Any]:
    if block.get("type") != "resource_link":
        return block
    about = f"{block['name']} ({block['mimeType']}, {block['size']:,} bytes)"
    return {"type": "text", "text": f"{about}: {block['uri']}"}


def _without(fields: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
