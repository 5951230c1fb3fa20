"""Keys of outputs, and the HTTP headers to serve them with.

A key is `<task>-<16 of the lease's token>/<number>.<extension>`; in a bucket, after a prefix. No
part of it comes from a buyer or a provider.
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
# Browsers only display these types. Others might be executed.
_INLINE = ("png", "jpg", "webp")
_LEASED = re.compile(r"(.+)-[0-9a-f]{16}")
_OURS = re.compile(r"[0-9]+\.[a-z]+")
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


def key_of(folder: str, number: int, output: Output) -> str:
    """Return the key of an output in a folder; numbers start at 0."""
    return f"{folder}/{number}.{_ENDINGS.get(output.media_type, 'bin')}"


def is_ours(file_name: str) -> bool:
    """Whether a file may have been written by the gateway, completely or partially."""
    return bool(_OURS.fullmatch(file_name))


def task_of(key: str) -> str:
    """Return the task id in a key."""
    folder = key.split("/")[-2]
    match = _LEASED.fullmatch(folder)
    return match[1] if match else folder


def headers_of(key: str) -> dict[str, str]:
    """Return the headers of an output: its media type, and a file name for saving it."""
    number, _, ending = key.rpartition("/")[2].partition(".")
    kind = _KINDS.get(ending, "application/octet-stream")
    name = f"{_UNSAFE.sub('', task_of(key))}-{int(number) + 1}.{ending}"
    use = "inline" if ending in _INLINE else "attachment"
    return {
        "Content-Type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind,
        "Content-Disposition": f'{use}; filename="{name}"',
        "Cache-Control": "private, max-age=3600, immutable",
    }
