"""Removes from a message what the agreed protocol revision does not know.

Clients of the official SDKs reject a whole result for one unknown kind of content, after they have
paid.
"""

from collections.abc import Mapping
from typing import Any

# Revisions are dates, so they compare as texts. Each is named for its additions.
_ANNOTATIONS = "2025-03-26"
_TITLES_LINKS_AND_STRUCTURE = "2025-06-18"
_WEBSITE = "2025-11-25"
_EXTENSIONS = "2026-07-28"


def speak(revision: str, method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the result of a method to a revision."""
    said = dict(result)
    if method == "tools/call" and revision < _TITLES_LINKS_AND_STRUCTURE:
        said.pop("structuredContent", None)
        said["content"] = [_link_as_text(block) for block in said.get("content", ())]
    elif method == "tools/list":
        unknown = _unknown_of_tools(revision)
        said["tools"] = [_without(tool, unknown) for tool in said.get("tools", ())]
    elif method == "initialize":
        unknown = _unknown_of_servers(revision)
        said["serverInfo"] = _without(said.get("serverInfo", {}), unknown)
        if revision < _EXTENSIONS:
            said["capabilities"] = _without(said.get("capabilities", {}), ("extensions",))
    return said


def _unknown_of_tools(revision: str) -> tuple[str, ...]:
    later = ("title", "_meta") if revision < _TITLES_LINKS_AND_STRUCTURE else ()
    return later if revision >= _ANNOTATIONS else (*later, "annotations")


def _unknown_of_servers(revision: str) -> tuple[str, ...]:
    later = ("description", "icons", "websiteUrl") if revision < _WEBSITE else ()
    return later if revision >= _TITLES_LINKS_AND_STRUCTURE else (*later, "title")


def _link_as_text(block: Mapping[str, Any]) -> Mapping[str, Any]:
    if block.get("type") != "resource_link":
        return block
    about = f"{block['name']} ({block['mimeType']}, {block['size']:,} bytes)"
    return {"type": "text", "text": f"{about}: {block['uri']}"}


def _without(fields: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
