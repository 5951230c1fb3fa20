"""The keys of outputs, which the gateway makes, and the headers that an output is served with.

A key is `<task>-<16 of the lease's token>/<number>.<ending>`; in a bucket, a prefix stands before
it. No part of it comes from a buyer or a provider.
"""

import re

from gateway.domain import Output, Result

_ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "text/markdown": "md",
    "text/plain": "txt",
    "application/json": "json",
    "application/pdf": "pdf",
}
_KINDS = {ending: media_type for media_type, ending in _ENDINGS.items()}
# A browser only shows these. It might run anything else.
_INLINE = ("png", "jpg", "webp")
_LEASED = re.compile(r"(.+)-[0-9a-f]{16}")
_OURS = re.compile(r"[0-9]+\.[a-z]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def outputs_of(result: Result) -> list[Output]:
    """Return everything to keep of a result; text becomes an output of its own, the last one.

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


def key_of(folder: str, number: int, output: Output) -> str:
    """Return the key of the output of a number, from 0, in a folder."""
    return f"{folder}/{number}.{_ENDINGS.get(output.media_type, 'bin')}"


def is_ours(file_name: str) -> bool:
    """Tell whether a file of this name may be one that the gateway wrote, whole or half."""
    return bool(_OURS.fullmatch(file_name))


def task_of(key: str) -> str:
    """Return the id of the task that a key was made for."""
    folder = key.split("/")[-2]
    match = _LEASED.fullmatch(folder)
    return match[1] if match else folder


def headers_of(key: str) -> dict[str, str]:
    """Return the headers of an output: its media type, and the name to save it under."""
    number, _, ending = key.rpartition("/")[2].partition(".")
    kind = _KINDS.get(ending, "application/octet-stream")
    name = f"{_UNSAFE.sub('', task_of(key))}-{int(number) + 1}.{ending}"
    use = "inline" if ending in _INLINE else "attachment"
    return {
        "Content-Type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind,
        "Content-Disposition": f'{use}; filename="{name}"',
        "Cache-Control": "private, max-age=3600, immutable",
    }
