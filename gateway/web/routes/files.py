"""The route that sends outputs to the holders of signed links."""

import asyncio
from types import TracebackType
from typing import Self, cast

from quart import Blueprint, Response, request
from quart.wrappers.response import FileBody
from werkzeug.datastructures import Range
from werkzeug.http import quote_etag, unquote_etag

from gateway.outputs.keys import headers_of
from gateway.web.front.current import current_gateway
from gateway.web.server.connection_limits import PIECE_BYTES

blueprint = Blueprint("files", __name__)

_NO_SCRIPTS = "default-src 'none'; sandbox"


class Download(FileBody):
    """A file sent in pieces and closed at once, also where the client leaves.

    Quart's own class asks a thread three times for every 8 KB. Where it is cancelled, it leaves
    the open file to the garbage collector.
    """

    buffer_size = PIECE_BYTES

    async def __aenter__(self) -> Self:
        self._open = self.file_path.open("rb")
        self._open.seek(self.begin)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._open.close()

    async def __anext__(self) -> bytes:
        left = min(self.buffer_size, self.end - self._open.tell())
        piece = await asyncio.to_thread(self._open.read, left) if left > 0 else b""
        if not piece:
            raise StopAsyncIteration
        return piece


class FileResponse(Response):
    """The app's response class; it sends files as `Download`."""

    file_body_class = Download


@blueprint.get("/files/<path:key>")
async def download(key: str) -> Response | tuple[dict[str, str], int, dict[str, str]]:
    """Send the file of a task's signed link, or the part that the client asks for.

    This function reads the `Range` header: Quart takes "the last bytes" for the first.
    """
    gateway = current_gateway()
    path = gateway.output_store.open(
        key,
        expires=request.args.get("expires", ""),
        signature=request.args.get("signature", ""),
        now=gateway.now(),
    )
    file = Download(path)
    tag = quote_etag(f"{path.stat().st_mtime_ns:x}-{file.size:x}")
    known = {"ETag": tag, "Accept-Ranges": "bytes", "Content-Security-Policy": _NO_SCRIPTS}
    headers = headers_of(key) | known
    if request.if_none_match.contains_weak(unquote_etag(tag)[0] or ""):
        return FileResponse(b"", 304, headers)
    is_part = _asks_for_part(tag)
    if is_part:
        file.begin, file.end = _read_range(file.size)
        headers["Content-Range"] = f"bytes {file.begin}-{file.end - 1}/{file.size}"
    if is_part and file.begin >= file.end:
        error = f"The range starts after the end of the file, which has {file.size:,} bytes."
        return (
            {"error": error, "code": "VALIDATION_ERROR"},
            416,
            {"Content-Range": f"bytes */{file.size}"},
        )
    body = b"" if request.method == "HEAD" else file
    answer = FileResponse(body, 206 if is_part else 200, headers)
    answer.content_length = file.end - file.begin
    return answer


def _asks_for_part(tag: str) -> bool:
    """Whether the client asks for one range of this version of the file (RFC 9110 §14.2)."""
    asked, only_if = request.range, request.headers.get("If-Range")
    return (
        asked is not None
        and asked.units == "bytes"
        and len(asked.ranges) == 1
        and only_if in (None, tag)
    )


def _read_range(size: int) -> tuple[int, int]:
    """Return the first byte that the client asks for, and the byte after the last.

    The first byte may lie past the end of the file.
    """
    begin, end = cast(Range, request.range).ranges[0]
    # A negative number asks for that many bytes at the end.
    if begin < 0:
        return max(size + begin, 0), size
    return begin, size if end is None else min(end, size)
