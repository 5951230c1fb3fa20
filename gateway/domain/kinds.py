"""Kinds of files that buyers send, and kinds of results that providers return.

A kind is a declaration. Its functions read untrusted bytes and run in the sandbox, by their names.
"""

import base64
from collections.abc import Mapping
from typing import Literal

import attrs

# The use of a result; it chooses the drawing beside an offer.
Shown = Literal["picture", "text", "sound", "video", "file"]


@attrs.frozen(kw_only=True)
class InSandbox:
    """A function that reads untrusted bytes in a confined child process; see `gateway.Sandbox`."""

    # `"package.module:name"`.
    function: str
    # Modules to load before the fork.
    warm: tuple[str, ...] = ()
    memory_bytes: int = 600_000_000
    # CPU time, in whole seconds.
    cpu_s: int = 10
    wall_s: float = 25.0
    # The maximum size of the answer, with new bytes if there are any.
    answer_bytes: int = 64_000_000


@attrs.frozen(kw_only=True)
class Limit:
    """Bounds of one measure of a file; another file is refused before payment."""

    # Such as "seconds".
    measure: str
    most: float
    least: float = 0.0


@attrs.frozen(kw_only=True)
class FileKind:
    """A kind of file that buyers send, identified by its content and measured before payment."""

    # Also its word in sentences for buyers, such as "picture".
    name: str
    plural: str = ""
    # The allowed extensions, with the dot. Empty: any.
    endings: tuple[str, ...] = ()
    # The extension that every endpoint must accept, if there is one.
    needed_ending: str = ""
    # Takes the extension, the bytes, and the maximum number of bytes as text. Returns measures as a
    # JSON object of numbers, and new bytes for the provider or none. Raises
    # `gateway.SandboxRefusal` with a sentence for the buyer if the content is not of this kind.
    read: InSandbox | None = None
    # The names of the measures that `read` returns.
    measures: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    # Whether each file is read. False: only if its price or a limit of the endpoint needs that.
    is_always_read: bool = True
    # A sentence for the description of `fileBase64`, and a line for /llms.txt.
    about: str = ""
    note: str = ""
    # Limits in the manifest, by the names of their fields.
    facts: Mapping[str, int] = attrs.field(factory=dict, hash=False)
    # A small valid file for examples, tests and `gateway check --live`, by extension; "": any.
    samples: Mapping[str, bytes] = attrs.field(factory=dict, hash=False, repr=False)
    # The name of a sample, without extension.
    sample_name: str = "file"

    def sample(self, endings: tuple[str, ...]) -> tuple[str, bytes] | None:
        """Return name and bytes of a sample with one of an endpoint's extensions, or None."""
        for ending, data in self.samples.items():
            if ending in endings:
                return f"{self.sample_name}{ending}", data
        if endings and "" in self.samples:
            return f"{self.sample_name}{endings[0]}", self.samples[""]
        return None


@attrs.frozen(kw_only=True)
class ResultKind:
    """A kind of result: its media types, and their check before a task completes."""

    # Also its word in sentences, such as "picture".
    name: str
    # Media types, each with its file extension without a dot: letters only.
    media_types: Mapping[str, str] = attrs.field(hash=False)
    # Takes the ordered `output_format` or an empty text, the provider's media type, and the bytes.
    # Returns facts as a JSON object (`media_type`, and numbers `width`, `height`, `seconds`), and
    # new bytes or none. Raises `gateway.SandboxRefusal` with the problem, such as "it is silent".
    check: InSandbox | None = None
    # The facts that `check` must return.
    facts: tuple[Literal["width", "height", "seconds"], ...] = ()
    max_bytes: int = 64_000_000
    shown: Shown = "file"
    # Whether browsers may display these types instead of saving them. Never for active content.
    is_inline: bool = False

    @property
    def is_checked(self) -> bool:
        """Whether an output is decoded before the task completes."""
        return self.check is not None or bool(self.facts)


# -- the core's kinds

# Limits of a picture to edit. Vendors refuse smaller ones, and decoding larger ones would take too
# much memory before payment. Phones take pictures of 12 or 24 megapixels.
MIN_PICTURE_SIDE = 64
MAX_PICTURE_PIXELS = 25_000_000

# The file extensions of such a picture, and the required format of its bytes.
PICTURE_FORMATS = {".png": "png", ".jpg": "jpg", ".jpeg": "jpg", ".webp": "webp"}

# The media types of pictures by their `output_format`.
PICTURE_TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}

# A PNG of 64 by 64 pixels: a black square on white, a subject that can be cut out. It is small,
# because headers of the 402 contain it.
_SMALL_PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQAAAACCEkxzAAAAGElEQVRIx2P4DwUMg4bBAASjDNyMQRVfAGtyfpCD2ler"
    "AAAAAElFTkSuQmCC"
)

PICTURE_FILE = FileKind(
    name="picture",
    plural="pictures",
    endings=tuple(PICTURE_FORMATS),
    needed_ending=".png",
    measures=("pixels",),
    about=(
        f" A still picture, {MIN_PICTURE_SIDE} pixels or more a side, "
        f"{MAX_PICTURE_PIXELS // 10**6} megapixels at most."
    ),
    note=(
        "the file is a still PNG, JPEG or WebP whose format is that of its name: each side "
        f"{MIN_PICTURE_SIDE} pixels or more, {MAX_PICTURE_PIXELS:,} pixels at most in all"
    ),
    facts={"minPictureSide": MIN_PICTURE_SIDE, "maxPicturePixels": MAX_PICTURE_PIXELS},
    samples={".png": _SMALL_PICTURE},
    sample_name="photo",
)
DOCUMENT_FILE = FileKind(
    name="document",
    plural="documents",
    measures=("pages",),
    is_always_read=False,
    # The first bytes of a PDF; a real file has more.
    samples={".txt": b"# Report\n\nHello.\n", "": b"%PDF-1.7\n"},
    sample_name="report",
)

# The kinds that the core reads itself.
CORE_FILES = (PICTURE_FILE, DOCUMENT_FILE)

PICTURES = ResultKind(
    name="picture",
    media_types={media_type: ending for ending, media_type in PICTURE_TYPES.items()},
    facts=("width", "height"),
    shown="picture",
    is_inline=True,
)
TEXT = ResultKind(
    name="text",
    media_types={"text/markdown": "md", "text/plain": "txt", "application/pdf": "pdf"},
    shown="text",
)
DATA = ResultKind(name="JSON", media_types={"application/json": "json"}, shown="text")
