"""Graphs in ComfyUI's API format, from a file, a picture, or the history of a server."""

import contextlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway import SettingsError
from gateway.vendors import as_object
from gateway_comfyui.metadata import PNG, chunks_of

# The text chunk in which ComfyUI's own save node keeps the graph.
_CHUNK = "prompt"
# A graph has some 100 KB.
_MAX_BYTES = 20_000_000


def read_graph_file(path: Path) -> dict[str, Any]:
    """Return the graph in a JSON file, or in a PNG that ComfyUI saved; raises `SettingsError`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None
    if data.startswith(PNG):
        return _graph_in_png(data, path.name)
    try:
        return graph_of(json.loads(data), path.name)
    except (ValueError, RecursionError):
        raise SettingsError(f"{path.name} is neither JSON nor a PNG that ComfyUI saved.") from None


def graph_of(value: Any, name: str) -> dict[str, Any]:
    """Return a graph in API format; raises `SettingsError` for any other format."""
    found = as_object(value)
    if isinstance(found.get("nodes"), list):
        raise SettingsError(
            f"{name} is the workflow as the editor saves it. Run it once and use `--last`, name a "
            "picture that it made, or choose File > Export (API) in ComfyUI."
        )
    if "class_type" not in as_object(found.get("prompt")) and isinstance(found.get("prompt"), dict):
        found = found["prompt"]
    if not found or not all(map(_is_node, found.values())):
        raise SettingsError(
            f"{name} is no workflow in API format: each entry needs a class_type and inputs. "
            "Choose File > Export (API) in ComfyUI."
        )
    # A run adds `is_changed` to nodes.
    return {
        number: {name: part for name, part in node.items() if name != "is_changed"}
        for number, node in found.items()
    }


def _is_node(value: Any) -> bool:
    node = as_object(value)
    return isinstance(node.get("class_type"), str) and isinstance(node.get("inputs"), dict)


def _graph_in_png(data: bytes, name: str) -> dict[str, Any]:
    for keyword, text in _texts_of(data):
        if keyword == _CHUNK:
            with contextlib.suppress(ValueError, RecursionError):
                return graph_of(json.loads(text), name)
    raise SettingsError(
        f"{name} holds no workflow: it was not saved by ComfyUI, or ComfyUI runs with "
        "--disable-metadata. Run the workflow once and use `--last`."
    )


def _texts_of(png: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield keyword and text of the text chunks of a PNG."""
    for kind, chunk in chunks_of(png):
        keyword, _, text = chunk[8:-4].partition(b"\0")
        if kind == b"tEXt":
            yield keyword.decode("latin-1"), text
        elif kind == b"zTXt":
            with contextlib.suppress(zlib.error):
                yield (
                    keyword.decode("latin-1"),
                    zlib.decompressobj().decompress(text[1:], _MAX_BYTES),
                )
        elif kind == b"iTXt" and text[:1] == b"\0":
            # Flags, language and translated keyword precede the text.
            yield keyword.decode("latin-1"), text[2:].split(b"\0", 2)[-1]


def is_link(value: object) -> bool:
    """Whether an input's value is the output of another node."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)  # noqa: PLR2004
