"""How many pages a document has, known before anybody pays."""

import attrs

from gateway.domain import Attachment
from gateway.errors import ExecutionError, InvalidInput
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLimits, SandboxLost, SandboxRefusal

_KINDS = {".pdf": "pdf", ".pptx": "pptx", ".tif": "tiff", ".tiff": "tiff"}
_PDF_WITHIN = 1024  # bytes that Acrobat and others forgive in front of its header
_ZIP = (b"PK\x03\x04",)
_BEGINNINGS = {  # vendors tell a file by its bytes, and bill what they find
    ".pptx": _ZIP,
    ".docx": _ZIP,
    ".xlsx": _ZIP,
    ".epub": _ZIP,
    ".png": (b"\x89PNG\r\n\x1a\n",),
    ".jpg": (b"\xff\xd8\xff",),
    ".jpeg": (b"\xff\xd8\xff",),
    ".bmp": (b"BM",),
    ".gif": (b"GIF8",),
    ".webp": (b"RIFF",),
}
_OF_OTHERS = (*_ZIP, b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # Office, EPUB, TIFF, BigTIFF
_MAX_WAITING = 8  # each holds 20 MB; whoever comes later is told at once
_WHY = {
    "out of time": "that takes too much time",
    "out of memory": "that takes too much memory",
    "crashed": "the file is damaged, or that takes too much memory",
}
_LIMITS = SandboxLimits(
    memory_bytes=500_000_000,  # 7.5 MB of 20,000 pages take 150
    cpu_s=3,  # the same take a third of a second
    wall_s=10.0,
    answer_bytes=100,
)


def _check_name(extension: str, data: bytes) -> None:
    """Raise `InvalidInput` where a name would hide pages: a PDF called scan.png has none to count.

    What the counters look at themselves, they refuse themselves.
    """
    if extension in (".pdf", ".tif", ".tiff"):
        return
    beginnings = _BEGINNINGS.get(extension)
    is_right = data.startswith(beginnings) if beginnings else not data.startswith(_OF_OTHERS)
    if not is_right or b"%PDF-" in data[:_PDF_WITHIN]:
        raise InvalidInput(f"The name of the file ends in {extension}, but it is something else.")


def _sandbox() -> Sandbox:
    function = "gateway.sandbox.pages_child:count"
    return Sandbox(function=function, warm=("encodings.cp437",), limits=_LIMITS)  # ZIP's charset


@attrs.define
class Pages:
    """Counts in a sandboxed process: a document comes from a stranger who has not paid yet."""

    _sandbox: Sandbox = attrs.field(factory=_sandbox)
    _counting: int = attrs.field(default=0, init=False)

    async def count(self, attachment: Attachment) -> int | None:
        """Return the pages of a PDF, the slides of a .pptx, the frames of a TIFF; else None.

        Raises `InvalidInput` for a file that cannot be read, or only with too much time or
        memory, and `ExecutionError` where this machine could not count.
        """
        _check_name(attachment.extension, attachment.data)
        kind = _KINDS.get(attachment.extension)
        if kind is None:
            return None
        if self._counting >= _MAX_WAITING:
            raise ExecutionError("Too many files are looked at now; nothing was charged.")
        self._counting += 1
        try:
            return int(await self._sandbox.call(kind, attachment.data))
        except SandboxRefusal as error:
            raise InvalidInput(str(error)) from None
        except SandboxEnded as error:
            raise InvalidInput(
                f"The pages of the file cannot be counted: {_WHY[error.end]}."
            ) from None
        except SandboxLost as error:
            raise ExecutionError("The pages of the file cannot be counted now.") from error
        finally:
            self._counting -= 1

    def close(self) -> None:
        """End the process that counts; the next document starts another."""
        self._sandbox.close()
