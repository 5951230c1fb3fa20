"""Reads the pages that hold no text, one child process for each, and puts them in their places."""

import asyncio
from collections.abc import Mapping, Sequence

import attrs

import gateway
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLost, SandboxRefusal

MAX_PAGES = 50  # read as pictures, of one document; at 3 s each, the rest of the queue waits
_UNREAD = "*(Page {number} is a picture, which was not read.)*"


@attrs.define(kw_only=True)
class PageReader:
    """Reads the pages of one document; without a sandbox it says where something is missing."""

    sandbox: Sandbox | None
    kind: str
    data: bytes = attrs.field(repr=False)
    _done: int = attrs.field(default=0, init=False)

    async def fill(
        self, pages: Sequence[str], textless: Mapping[int, bool], job: gateway.Job
    ) -> list[str]:
        """Return the pages with what could be read of those without text.

        `textless` tells of each whether it is surely a picture, not an empty page. Raises what
        `Sandbox.call` does where nothing at all could be read, or another try may read more.
        """
        filled = list(pages)
        chosen = list(textless)[:MAX_PAGES]  # a few more are found only after payment
        reading = (self._read(number, len(chosen), job) for number in chosen)
        found = dict(zip(chosen, await asyncio.gather(*reading), strict=True))
        failed = [answer for answer in found.values() if isinstance(answer, Exception)]
        for error in failed:
            if isinstance(error, SandboxLost) or len(failed) == len(pages):
                raise error
        for number, is_picture in textless.items():
            answer = found.get(number)
            if isinstance(answer, str):
                filled[number] = answer
            elif is_picture and not filled[number].strip() and len(pages) > 1:
                filled[number] = _UNREAD.format(number=number + 1)
        return filled

    async def _read(self, number: int, total: int, job: gateway.Job) -> str | Exception | None:
        """Return a page's text, or what is wrong with this page alone."""
        if self.sandbox is None:
            return None
        try:
            answer = await self.sandbox.call(self.kind, str(number), self.data)
        except (SandboxRefusal, SandboxEnded, SandboxLost) as error:
            return error
        self._done += 1
        await job.progress(self._done / total, f"{self._done} of {total} pages read")
        return answer.decode()
