"""Reads pages without text, each in a child process, and inserts their text."""

import asyncio
from collections.abc import Mapping, Sequence

import attrs

import gateway
from gateway.domain.words import has_words
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLost, SandboxRefusal
from gateway_documents.errors import UNREADABLE_SCRIPT, Unreadable

# Pages of a scan that are tried before payment, and how many may fail: each takes up to 12 s.
_MAX_CHECKED, _MAX_FAILED = 4, 2
# Maximum pages read as pictures per document: each takes 3 s, and other documents wait.
MAX_PAGES = 50
_UNREAD = "Page {number} is a picture, which was not read."


@attrs.define(kw_only=True)
class PageReader:
    """Reads a document's pages; without a sandbox, it marks the pages that were not read."""

    sandbox: Sandbox | None
    kind: str
    data: bytes = attrs.field(repr=False)
    unread: list[str] = attrs.field(factory=list, init=False)
    """Sentences about the pages that `fill` did not read."""
    has_read: bool = attrs.field(default=False, init=False)
    """Whether `fill` read words."""
    _done: int = attrs.field(default=0, init=False)

    async def fill(
        self, pages: Sequence[str], textless: Mapping[int, bool], job: gateway.Job
    ) -> list[str]:
        """Return the pages, with the text read from those without text of their own.

        `textless` has these pages by number, from 0; True: certainly a picture, not an empty page.
        Raises the error of `Sandbox.call` if no page could be read or a retry may read more.
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
            answer, own = found.get(number), filled[number].strip()
            if isinstance(answer, str):
                # The page's own text, such as a stamp, is part of what is read, unless the reader
                # found a picture only.
                filled[number] = answer if _letters(answer) >= _letters(own) else own
                self.has_read = self.has_read or has_words(filled[number])
            elif is_picture and len(pages) > 1:
                self.unread.append(_UNREAD.format(number=number + 1))
                filled[number] = "\n\n".join(filter(None, (own, f"*({self.unread[-1]})*")))
        return filled

    async def check(self, textless: Mapping[int, bool]) -> None:
        """Read a few of these pages until one has text; without a sandbox, none.

        `textless` is as for `fill`. Raises the error of `Sandbox.call` if no page can be read, and
        `Unreadable` if none has text.
        """
        if self.sandbox is None:
            return
        refusal: Exception = Unreadable(UNREADABLE_SCRIPT)
        failed = 0
        for number in _sample(textless):
            try:
                if (await self.sandbox.call(self.kind, str(number), self.data)).strip():
                    return
            except (SandboxRefusal, SandboxEnded) as error:
                refusal, failed = error, failed + 1
            if failed == _MAX_FAILED:
                break
        raise refusal

    async def _read(self, number: int, total: int, job: gateway.Job) -> str | Exception | None:
        """Read a page; None without a sandbox."""
        if self.sandbox is None:
            return None
        try:
            answer = await self.sandbox.call(self.kind, str(number), self.data)
        except (SandboxRefusal, SandboxEnded, SandboxLost) as error:
            return error
        self._done += 1
        await job.progress(self._done / total, f"{self._done} of {total} pages read")
        return answer.decode()


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _sample(textless: Mapping[int, bool]) -> list[int]:
    """Return the pages to try: from the whole document, and pictures before empty pages."""
    chosen: list[int] = []
    for wanted in (True, False):
        pages = [page for page in list(textless)[:MAX_PAGES] if textless[page] is wanted]
        left = min(_MAX_CHECKED - len(chosen), len(pages))
        chosen += [pages[at * (len(pages) - 1) // max(left - 1, 1)] for at in range(left)]
    return chosen
