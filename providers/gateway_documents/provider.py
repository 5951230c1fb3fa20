"""The provider `documents`: refuses unreadable files before payment, parses in a sandbox."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import attrs
import structlog

import gateway
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLost, SandboxRefusal
from gateway_documents import child, sandboxes
from gateway_documents.checked import CheckedResults
from gateway_documents.errors import UNREADABLE_SCRIPT, Unreadable
from gateway_documents.kinds import recognise
from gateway_documents.page_reader import MAX_PAGES, PageReader

_SENTENCES = {
    "out of time": "The file is too slow to parse: it takes too much time.",
    "out of memory": "The file is too large: it takes too much memory to parse.",
    "crashed": "The file is damaged, or takes too much memory to parse.",
}
_NO_OCR = "The file contains no text, only a picture of it, which this gateway cannot read."
_WAY_OUT = "pip install 'generation-gateway[ocr]'"
_log = structlog.get_logger()


@attrs.define
class DocumentParser:
    """Parses documents to Markdown, each in a fresh, limited child process."""

    traits: ClassVar[gateway.Traits] = gateway.Traits(idempotent_submit=True, limits_pages=True)
    name: str = "documents"
    _texts: Sandbox = attrs.field(factory=sandboxes.text_reader)
    _pictures: Sandbox | None = attrs.field(factory=sandboxes.picture_reader)
    _checked: CheckedResults = attrs.field(factory=CheckedResults, init=False)
    _has_warned: bool = attrs.field(default=False, init=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the operator, which `gateway plugins` shows."""
        return () if self._pictures else (f"pictures of text are refused: {_WAY_OUT}",)

    @property
    def reads_pictures(self) -> bool:
        """Whether the extra for pictures of text is installed."""
        return self._pictures is not None

    async def validate(
        self,
        request: gateway.GenerationRequest,
        endpoint: gateway.Endpoint,
    ) -> None:
        """Refuse a file that is empty, encrypted, damaged, too large or misnamed.

        A sandboxed process parses it as `submit` does, so that what cannot be parsed or contains
        no text is refused before payment. Of a scanned document, up to four pages are read.
        """
        kind, data = await self._recognise(request)
        try:
            await self._check(request, endpoint, kind, data)
        except gateway.Transient:
            # `submit` refuses the same files, with a refund, but knows only its own page limit.
            if endpoint.max_pages is not None and endpoint.max_pages < child.MAX_PAGES:
                raise

    async def _check(
        self, request: gateway.GenerationRequest, endpoint: gateway.Endpoint, kind: str, data: bytes
    ) -> None:
        with _errors_of_the_gateway():
            about, *texts = await self._texts.call_parts("check", kind, data)
            facts = json.loads(about)
            if endpoint.max_pages is not None and facts["pages"] > endpoint.max_pages:
                raise Unreadable(
                    f"The file is too large: it has {facts['pages']:,} pages, "
                    f"and this endpoint takes up to {endpoint.max_pages:,}."
                )
            textless, has_text = _textless(facts), facts["has_text"]
            self._check_pages(textless, has_text=has_text)
            if not has_text:
                reader = PageReader(sandbox=self._pictures, kind=kind, data=data)
                await reader.check(textless)
            if texts:
                self._checked.add(_name(request, kind), (about, *texts))

    async def submit(self, request: gateway.GenerationRequest, job: gateway.Job) -> gateway.Result:
        """Parse the file, unless it was just checked; a cancellation kills the child process."""
        kind, data = await self._recognise(request)
        with _errors_of_the_gateway():
            checked = self._checked.take(_name(request, kind))
            about, *texts = checked or await self._texts.call_parts("parse", kind, data)
            facts, pages = json.loads(about), [text.decode() for text in texts]
            reader = PageReader(sandbox=self._pictures, kind=kind, data=data)
            if textless := _textless(facts):
                pages = await reader.fill(pages, textless, job)
        if not facts["has_text"] and not reader.has_read:
            raise gateway.InvalidInput(UNREADABLE_SCRIPT if self._pictures else _NO_OCR)
        notes = facts["notes"]
        parts = [page.strip("\n") for page in pages if page.strip()]
        text = "\n\n".join((*parts, *(f"*({note})*" for note in notes)))
        if request.output_format != "json":
            return gateway.Result(text=text)
        return gateway.Result(
            text=text, outputs=(await self._describe(pages, [*notes, *reader.unread]),)
        )

    async def _describe(self, pages: Sequence[str], notes: Sequence[str]) -> gateway.Output:
        """Return the pages as an output in JSON (`child.page_json`)."""
        # Megabytes of text would block the event loop.
        data = await asyncio.to_thread(lambda: json.dumps(list(pages)).encode())
        with _errors_of_the_gateway():
            described = await self._texts.call("describe", json.dumps(list(notes)), data)
        return gateway.Output(data=described, media_type="application/json")

    async def extract(self, prompt: str, markdown: str) -> str:
        """Return JSON from a document's Markdown, as `child.extraction.extraction` does."""
        with _errors_of_the_gateway():
            found = await self._texts.call("extract", prompt, markdown.encode())
        return found.decode()

    async def warm_up(self) -> None:
        """Start the parsing process early, which makes the first document 0.3 s faster."""
        await self._texts.start()

    async def close(self) -> None:
        """End the processes; the next document starts new ones."""
        self._texts.close()
        if self._pictures is not None:
            self._pictures.close()

    async def _recognise(self, request: gateway.GenerationRequest) -> tuple[str, bytes]:
        """Return the kind of the file and its bytes; a thread works for up to 50 ms."""
        attachment = request.attachment
        if attachment is None:
            raise gateway.InvalidInput("There is no file to parse: send fileBase64 and fileName.")
        with _errors_of_the_gateway():
            kind = await asyncio.to_thread(recognise, attachment.extension, attachment.data)
        return kind, attachment.data

    def _check_pages(self, textless: Mapping[int, bool], *, has_text: bool) -> None:
        if not has_text:
            self._check_pictures_can_be_read()
        if self._pictures is not None and len(textless) > MAX_PAGES:
            raise Unreadable(
                f"The file is too large: {len(textless):,} pages of the file are pictures, "
                f"and this gateway reads up to {MAX_PAGES} of them."
            )

    def _check_pictures_can_be_read(self) -> None:
        """Raise `Unreadable` if the OCR extra is missing, and log that once for the operator."""
        if self._pictures is not None:
            return
        if not self._has_warned:
            _log.warning("documents.cannot_read_pictures", remedy=_WAY_OUT)
            self._has_warned = True
        raise Unreadable(_NO_OCR)


def _name(request: gateway.GenerationRequest, kind: str) -> str:
    """Return what identifies a file with the kind that its name says."""
    return f"{kind} {request.attachment.sha256}" if request.attachment else kind


def _textless(facts: Mapping[str, Any]) -> Mapping[int, bool]:
    return {int(page): is_picture for page, is_picture in facts["textless"].items()}


@contextmanager
def _errors_of_the_gateway() -> Iterator[None]:
    """Convert the sandbox's errors inside the block into the gateway's."""
    try:
        yield
    except SandboxRefusal as error:
        raise gateway.InvalidInput(str(error)) from None
    except SandboxEnded as error:
        raise gateway.InvalidInput(_SENTENCES[error.end]) from None
    except SandboxLost as error:
        raise gateway.Transient(f"The document parser: {error}") from error
