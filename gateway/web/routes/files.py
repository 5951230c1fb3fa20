"""Serves outputs by signed links, and the built files of the web pages.

`make frontend` builds the latter from `frontend/` into `static/web/`, with hashed names that
browsers may cache forever. `manifest.json` maps source names to built names.
"""

import asyncio
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import attrs
from quart import Blueprint, Response, request
from quart.wrappers.response import FileBody
from werkzeug.datastructures import Range
from werkzeug.http import quote_etag, unquote_etag

from gateway.errors import NotFound
from gateway.web.front.current import current_gateway
from gateway.web.server.connection_limits import PIECE_BYTES

blueprint = Blueprint("files", __name__)

_NO_SCRIPTS = "default-src 'none'; sandbox"
MANIFEST = "manifest.json"
_FOR_EVER = "public, max-age=31536000, immutable"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webp": "image/webp",
    ".ogg": "audio/ogg",
}
# Pictures are compressed already.
_COMPRESSED = (".css", ".js", ".svg", ".txt")


class Download(FileBody):
    """A file sent in pieces and closed promptly, even if the client disconnects.

    Quart's own class needs three thread calls per 8 KB, and leaves the file open until garbage
    collection when it is cancelled.
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
    """The app's response class, which sends files as `Download`."""

    file_body_class = Download


@blueprint.get("/files/<path:key>")
async def download(key: str) -> Response | tuple[dict[str, str], int, dict[str, str]]:
    """Send an output, or one range of it.

    Quart mistakes a suffix range ("the last bytes") for the first bytes, so this handles `Range`.
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
    headers = gateway.catalog.media_types.headers_of(key) | known
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
    """Whether the client requests one range of this version of the file (RFC 9110 §14.2)."""
    asked, only_if = request.range, request.headers.get("If-Range")
    return (
        asked is not None
        and asked.units == "bytes"
        and len(asked.ranges) == 1
        and only_if in (None, tag)
    )


def _read_range(size: int) -> tuple[int, int]:
    """Return start and end of the requested range; the start may be past the end of the file."""
    begin, end = cast(Range, request.range).ranges[0]
    # A negative number requests that many bytes at the end.
    if begin < 0:
        return max(size + begin, 0), size
    return begin, size if end is None else min(end, size)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Asset:
    """One built file."""

    media_type: str
    data: bytes
    # None if compression saves nothing.
    gzipped: bytes | None


@attrs.define(eq=False, repr=False)
class Assets:
    """The built files of one folder, read on first use and kept in memory."""

    folder: Path
    # URL prefix.
    prefix: str = "/web/"
    _names: Mapping[str, str] | None = None
    _kept: dict[str, Asset] = attrs.field(factory=dict)

    def url(self, source: str) -> str:
        """Return the URL path of a built file by its source name, such as `play.js`."""
        return f"{self.prefix}{self.name(source)}"

    def name(self, source: str) -> str:
        """Return the built name of a file by its source name."""
        return self._built_names()[source]

    def __getitem__(self, name: str) -> Asset:
        """Return a file by its built name; raises `NotFound`.

        Only names of the manifest are valid, so no request reaches another file.
        """
        if name not in self._kept:
            if name not in self._built_names().values():
                raise NotFound("There is no such file. GET / shows what is sold here.")
            path = self._path(name)
            data = path.read_bytes()
            packed = gzip.compress(data, mtime=0) if path.suffix in _COMPRESSED else None
            media_type = _MEDIA_TYPES[path.suffix]
            self._kept[name] = Asset(media_type=media_type, data=data, gzipped=packed)
        return self._kept[name]

    def _built_names(self) -> Mapping[str, str]:
        if self._names is None:
            self._names = json.loads((self.folder / MANIFEST).read_text())
        return self._names

    def _path(self, name: str) -> Path:
        return self.folder / name


def answer_asset(found: Asset) -> Response:
    """Return a file that browsers may cache forever, compressed if they accept gzip."""
    headers = {"Content-Type": found.media_type, "Cache-Control": _FOR_EVER}
    if found.gzipped is None:
        return Response(found.data, headers=headers)
    headers["Vary"] = "Accept-Encoding"
    if not request.accept_encodings.quality("gzip"):
        return Response(found.data, headers=headers)
    return Response(found.gzipped, headers=headers | {"Content-Encoding": "gzip"})


def static_folder() -> Path:
    """Return the folder of llms.txt and the pages: in the wheel, or at the top of a checkout."""
    inside = Path(__file__).parents[1] / "static"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "static"
