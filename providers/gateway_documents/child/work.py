"""What a child does: reads one document, answers with Markdown or a sentence, and ends."""

import os
import re
import socket

from gateway_documents import frames
from gateway_documents.child import parsing
from gateway_documents.errors import Unreadable

EXIT_OUT_OF_MEMORY = 1
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # PDFs hold some; databases refuse NUL


def serve(descriptor: int) -> None:
    """Answer the conversation behind a descriptor and end this process."""
    with socket.socket(fileno=descriptor) as conversation:
        kind = _read(conversation, frames.KIND).decode()
        document = _read(conversation, frames.DOCUMENT)
        try:
            conversation.sendall(_answer(kind, document))
        except MemoryError:
            os._exit(EXIT_OUT_OF_MEMORY)
    os._exit(0)


def _answer(kind: str, document: bytes) -> bytes:
    try:
        markdown = _CONTROLS.sub("", parsing.to_markdown(kind, document)).encode(errors="replace")
    except Unreadable as error:
        return frames.pack(frames.REFUSAL, str(error).encode())
    if not markdown.strip():
        return frames.pack(frames.REFUSAL, b"The file holds no text.")
    if len(markdown) > frames.MAX_ANSWER_BYTES:
        return frames.pack(frames.REFUSAL, b"The file holds more than 16 MB of text.")
    return frames.pack(frames.MARKDOWN, markdown)


def _read(conversation: socket.socket, tag: bytes) -> bytes:
    found, size = frames.HEAD.unpack(_read_exactly(conversation, frames.HEAD.size))
    if found != tag:
        raise EOFError(f"expected a frame {tag!r}, not {found!r}")
    return _read_exactly(conversation, size)


def _read_exactly(conversation: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = conversation.recv(min(size - len(data), 1 << 20))
        if not chunk:
            raise EOFError("the gateway hung up")
        data += chunk
    return bytes(data)
