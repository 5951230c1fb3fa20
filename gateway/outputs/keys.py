"""Keys of outputs, and the HTTP headers to serve them with.

A key is `<task>-<16 of the lease's token>/<number>.<extension>`; in a bucket, after a prefix. No
part of it comes from a buyer or a provider.
"""

import re
from collections.abc import Iterable

from gateway.domain import DATA, PICTURES, TEXT, Capability, Output, Result, ResultKind

# A file that is being written, and one of an unknown type.
_RESERVED = ("partial", "bin")
_LEASED = re.compile(r"(.+)-[0-9a-f]{16}")
_OURS = re.compile(r"[0-9]+\.[a-z0-9]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def outputs_of(result: Result) -> list[Output]:
    """Return the outputs of a result; its text becomes the last one.

    Raises `TypeError` for an output that is not an `Output` with bytes.
    """
    outputs: list[Output] = []
    for output in result.outputs:
        if not isinstance(output, Output) or not isinstance(output.data, bytes):
            raise TypeError("an output is not bytes")
        outputs.append(output)
    if result.text is not None:
        outputs.append(Output(data=result.text.encode(), media_type=result.text_media_type))
    return outputs


def is_ours(file_name: str) -> bool:
    """Whether a file may have been written by the gateway, completely or partially."""
    return bool(_OURS.fullmatch(file_name))


def task_of(key: str) -> str:
    """Return the task id in a key."""
    folder = key.split("/")[-2]
    match = _LEASED.fullmatch(folder)
    return match[1] if match else folder


class MediaTypes:
    """Media types of outputs and their file extensions: the core's, and those of plugins' kinds.

    An output of any other type is saved as `.bin`, and served as bytes.
    """

    core_kinds = (PICTURES, TEXT, DATA)

    def __init__(self) -> None:
        self.reset(())

    def reset(self, capabilities: Iterable[Capability]) -> None:
        """Keep only the media types of these capabilities, and the core's."""
        self._endings: dict[str, str] = {}
        self._types: dict[str, str] = {}
        self._inline: set[str] = set()
        for kind in self.core_kinds:
            self.add(kind)
        for capability in capabilities:
            for kind in capability.results:
                self.add(kind)

    def add(self, kind: ResultKind) -> None:
        """Add the media types of a kind."""
        for media_type, ending in kind.media_types.items():
            self._endings[media_type] = ending
            # Of two types with one extension, it names the first.
            self._types.setdefault(ending, media_type)
            if kind.is_inline:
                self._inline.add(ending)

    def find_clash(self, kind: ResultKind) -> str | None:
        """Return a sentence about a type that already has another extension or use, if any."""
        for media_type, ending in kind.media_types.items():
            known = self._endings.get(media_type, ending), self._types.get(ending, media_type)
            if known != (ending, media_type) or ending in _RESERVED:
                return f"the extension {ending!r} of {media_type} is taken or not the usual one"
            if media_type in self._endings and (ending in self._inline) != kind.is_inline:
                return f"another kind has {media_type} with another is_inline"
        return None

    def key_of(self, folder: str, number: int, output: Output) -> str:
        """Return the key of an output in a folder; numbers start at 0."""
        return f"{folder}/{number}.{self._endings.get(output.media_type, 'bin')}"

    def headers_of(self, key: str) -> dict[str, str]:
        """Return the headers of an output: its media type, and a file name for saving it."""
        number, _, ending = key.rpartition("/")[2].partition(".")
        kind = self._types.get(ending, "application/octet-stream")
        name = f"{_UNSAFE.sub('', task_of(key))}-{int(number) + 1}.{ending}"
        # Browsers only display these types. Others might be executed.
        use = "inline" if ending in self._inline else "attachment"
        return {
            "Content-Type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind,
            "Content-Disposition": f'{use}; filename="{name}"',
            "Cache-Control": "private, max-age=3600, immutable",
        }
