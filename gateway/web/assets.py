"""The built files of the pages: stylesheet, scripts and pictures, each named by its content.

`make frontend` builds them from `frontend/` into `static/web/`, with `manifest.json`, which says
what each one is called. A name that changes with the content lets browsers keep a file for ever.
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import attrs
from quart import Response, request

from gateway.errors import NotFound

MANIFEST = "manifest.json"
_FOR_EVER = "public, max-age=31536000, immutable"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webp": "image/webp",
}
# Pictures are compressed already.
_COMPRESSED = (".css", ".js", ".svg", ".txt")


@attrs.frozen(kw_only=True)
class Asset:
    """One built file."""

    media_type: str
    data: bytes = attrs.field(repr=False)
    # The same by gzip; None where that saves nothing.
    gzipped: bytes | None = attrs.field(repr=False)


@attrs.define
class Assets:
    """The built files of one folder; each is read when it is first asked for, and kept."""

    folder: Path
    # Of the paths under which the files are served.
    prefix: str = "/web/"
    _names: Mapping[str, str] | None = None
    _kept: dict[str, Asset] = attrs.field(factory=dict)

    def url(self, source: str) -> str:
        """Return the path of a built file by the name of its source, such as `play.js`."""
        return f"{self.prefix}{self._built_names()[source]}"

    def __getitem__(self, name: str) -> Asset:
        """Return a file by its built name; raises `NotFound`.

        Only names of the manifest are looked up, so no request reaches another file.
        """
        if name not in self._kept:
            if name not in self._built_names().values():
                raise NotFound("There is no such file. GET / shows what is sold here.")
            self._kept[name] = _read(self._path(name))
        return self._kept[name]

    def _built_names(self) -> Mapping[str, str]:
        if self._names is None:
            self._names = json.loads((self.folder / MANIFEST).read_text())
        return self._names

    def _path(self, name: str) -> Path:
        """Return where the file of a built name lies."""
        return self.folder / name


def _read(path: Path) -> Asset:
    data = path.read_bytes()
    packed = gzip.compress(data, mtime=0) if path.suffix in _COMPRESSED else None
    return Asset(media_type=_MEDIA_TYPES[path.suffix], data=data, gzipped=packed)


def answer_asset(found: Asset) -> Response:
    """Return a file that browsers may keep for ever, by gzip if they take that."""
    headers = {"Content-Type": found.media_type, "Cache-Control": _FOR_EVER}
    if found.gzipped is None:
        return Response(found.data, headers=headers)
    headers["Vary"] = "Accept-Encoding"
    if not request.accept_encodings.quality("gzip"):
        return Response(found.data, headers=headers)
    return Response(found.gzipped, headers=headers | {"Content-Encoding": "gzip"})


def static_folder() -> Path:
    """Return the folder of llms.txt and the pages: inside the wheel, or a checkout's top level."""
    inside = Path(__file__).parent / "static"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "static"
