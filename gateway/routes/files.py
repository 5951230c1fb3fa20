"""The route that hands out outputs by signed links."""

import asyncio
import mimetypes
from types import TracebackType
from typing import Self

from quart import Blueprint, Response, request, send_file
from quart.wrappers.response import FileBody

from gateway.services import services

blueprint = Blueprint("files", __name__)


class Download(FileBody):
    """A file in large pieces, closed at once also where the client leaves.

    Quart's own asks a thread three times for every 8 KB, and leaves the file to the garbage
    collector where it is cancelled.
    """

    buffer_size = 256 * 1024

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
    """The app's response; files go out as `Download`."""

    file_body_class = Download


@blueprint.get("/files/<path:key>")
async def download(key: str) -> Response:
    """Send the file behind a link that a task showed."""
    gateway = services()
    path = gateway.artifacts.open(
        key,
        expires=request.args.get("expires", ""),
        signature=request.args.get("signature", ""),
        now=gateway.now(),
    )
    media_type = "text/markdown" if path.suffix == ".md" else mimetypes.guess_type(path.name)[0]
    response: Response = await send_file(
        path, mimetype=media_type or "application/octet-stream", conditional=True
    )
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.headers["Cache-Control"] = "private, max-age=3600, immutable"
    return response
