"""Reads pages without text, each in a child process, and puts their text into the document."""

import asyncio
from collections.abc import Mapping, Sequence

import attrs

import gateway
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLost, SandboxRefusal

# Pages of one document that are read as pictures; at 3 s each, other documents have to wait.
MAX_PAGES = 50
_UNREAD = "*(Page {number} is a picture, which was not read.)*"


@attrs.define(kw_only=True)
class PageReader:
    """Reads the pages of one document; without a sandbox it marks the pages that were not read."""

    sandbox: Sandbox | None
    kind: str
    data: bytes = attrs.field(repr=False)
    _done: int = attrs.field(default=0, init=False)

    async def fill(
        self, pages: Sequence[str], textless: Mapping[int, bool], job: gateway.Job
    ) -> list[str]:
        """Return the pages, with the text that was read on those without text.

        `textless` has these pages by number, from 0; True: surely a picture and not an empty page.
        Raises the error of `Sandbox.call` if no page could be read or another try may read more.
        """
        filled = list(pages)
        chosen = list(textless)[:MAX_PAGES]  # `validate` may have missed a few
        readings = (self._read(number, len(chosen), job) for number in chosen)
        found = dict(zip(chosen, await asyncio.gather(*readings), strict=True))
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
        """Return a page's text, the error of this page, or None without a sandbox."""
        if self.sandbox is None:
            return None
        try:
            answer = await self.sandbox.call(self.kind, str(number), self.data)
        except (SandboxRefusal, SandboxEnded, SandboxLost) as error:
            return error
        self._done += 1
        await job.progress(self._done / total, f"{self._done} of {total} pages read")
        return answer.decode()
