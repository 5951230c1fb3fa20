"""How many pages a document has, known before anybody pays."""

import attrs

from gateway.domain import Attachment
from gateway.errors import ExecutionError, InvalidInput
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLimits, SandboxLost, SandboxRefusal

_KINDS = {".pdf": "pdf", ".pptx": "pptx", ".tif": "tiff", ".tiff": "tiff"}
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


def _sandbox() -> Sandbox:
    function = "gateway.pages_child:count"
    return Sandbox(function=function, warm=("encodings.cp437",), limits=_LIMITS)  # ZIP's charset


@attrs.define
class Pages:
    """Counts in a sandboxed process: a document comes from a stranger who has not paid yet."""

    _sandbox: Sandbox = attrs.field(factory=_sandbox)

    async def count(self, attachment: Attachment) -> int | None:
        """Return the pages of a PDF, the slides of a .pptx, the frames of a TIFF; else None.

        Raises `InvalidInput` for a file that cannot be read, or only with too much time or
        memory, and `ExecutionError` where this machine could not count.
        """
        kind = _KINDS.get(attachment.extension)
        if kind is None:
            return None
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

    def close(self) -> None:
        """End the process that counts; the next document starts another."""
        self._sandbox.close()
