"""The provider `documents`: refuses unreadable files before payment, parses in a sandbox."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import ClassVar

import attrs
import structlog

import gateway
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLost, SandboxRefusal
from gateway_documents import sandboxes
from gateway_documents.errors import Unreadable
from gateway_documents.kinds import recognise
from gateway_documents.page_reader import MAX_PAGES, PageReader

_SENTENCES = {
    "out of time": "The file takes too much time to parse.",
    "out of memory": "The file takes too much memory to parse.",
    "crashed": "The file cannot be parsed: it is damaged, or takes too much memory.",
}
_NO_OCR = (
    "The file holds no text, only a picture of it, and this gateway cannot read pictures of text."
)
_WAY_OUT = "pip install 'generation-gateway[ocr]'"
_log = structlog.get_logger()


@attrs.define
class DocumentParser:
    """Parses documents to Markdown, each in a new, confined child process."""

    traits: ClassVar[gateway.Traits] = gateway.Traits(idempotent_submit=True)
    name: str = "documents"
    _texts: Sandbox = attrs.field(factory=sandboxes.text_reader)
    _checks: Sandbox = attrs.field(factory=sandboxes.checker)
    _pictures: Sandbox | None = attrs.field(factory=sandboxes.picture_reader)
    _has_warned: bool = attrs.field(default=False, init=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the operator, shown by `gateway plugins`."""
        return () if self._pictures else (f"pictures of text are refused: {_WAY_OUT}",)

    @property
    def reads_pictures(self) -> bool:
        """Whether the extra for pictures of text is installed."""
        return self._pictures is not None

    async def validate(
        self,
        request: gateway.GenerationRequest,
        endpoint: gateway.Endpoint,  # noqa: ARG002 - of the protocol
    ) -> None:
        """Refuse a file that is empty, locked, not a document, or misnamed.

        A sandboxed process also checks that a PDF can be opened, and has text or pictures that this
        gateway can read.
        """
        kind, data = await self._recognise(request)
        with suppress(gateway.Transient), _errors_of_the_gateway():
            if kind == "picture":
                self._check_pages(dict.fromkeys(_frames(request), True), has_text=False)
            if kind == "pdf":
                facts, text = await self._checks.call_parts(data)
                self._check_pages(_textless(facts), has_text=bool(text))

    async def submit(self, request: gateway.GenerationRequest, job: gateway.Job) -> gateway.Result:
        """Parse the file; cancelling kills the child process."""
        kind, data = await self._recognise(request)
        with _errors_of_the_gateway():
            textless, pages = await self._read(kind, request, data)
            if textless:
                reader = PageReader(sandbox=self._pictures, kind=kind, data=data)
                pages = await reader.fill(pages, textless, job)
        text = "\n\n".join(page.strip("\n") for page in pages if page.strip())
        if not text:
            raise gateway.InvalidInput("The file holds no text." if self._pictures else _NO_OCR)
        return gateway.Result(text=text)

    async def extract(self, prompt: str, markdown: str) -> str:
        """Return JSON from a document's Markdown, as `child.extraction.extract` does."""
        with _errors_of_the_gateway():
            found = await self._texts.call("extract", prompt, markdown.encode())
        return found.decode()

    async def warm_up(self) -> None:
        """Start the parsing process early, which makes the first document 0.3 s faster."""
        await self._texts.start()

    async def close(self) -> None:
        """End the processes; the next document starts new ones."""
        self._texts.close()
        self._checks.close()
        if self._pictures is not None:
            self._pictures.close()

    async def _recognise(self, request: gateway.GenerationRequest) -> tuple[str, bytes]:
        """Detect the type in a thread, which takes up to 50 ms."""
        attachment = request.attachment
        if attachment is None:
            raise gateway.InvalidInput("There is no file to parse: send fileBase64 and fileName.")
        with _errors_of_the_gateway():
            kind = await asyncio.to_thread(recognise, attachment.extension, attachment.data)
        return kind, attachment.data

    async def _read(
        self, kind: str, request: gateway.GenerationRequest, data: bytes
    ) -> tuple[Mapping[int, bool], Sequence[str]]:
        """Return the pages without text, and all pages.

        Every frame of a picture is a page.
        """
        if kind == "picture":
            frames = _frames(request)
            return dict.fromkeys(frames, True), ["" for _ in frames]
        facts, *pages = await self._texts.call_parts("parse", kind, data)
        return _textless(facts), [page.decode() for page in pages]

    def _check_pages(self, textless: Mapping[int, bool], *, has_text: bool) -> None:
        if not has_text:
            self._check_pictures_can_be_read()
        if self._pictures is not None and len(textless) > MAX_PAGES:
            raise Unreadable(
                f"{len(textless):,} pages of the file are pictures; "
                f"this gateway reads up to {MAX_PAGES} of them."
            )

    def _check_pictures_can_be_read(self) -> None:
        """Raise `Unreadable` without the OCR extra, and log that once."""
        if self._pictures is not None:
            return
        if not self._has_warned:
            _log.warning("documents.cannot_read_pictures", way_out=_WAY_OUT)
            self._has_warned = True
        raise Unreadable(_NO_OCR)


def _frames(request: gateway.GenerationRequest) -> range:
    return range(request.pages or 1)


def _textless(facts: bytes) -> Mapping[int, bool]:
    return {int(page): is_picture for page, is_picture in json.loads(facts).items()}


@contextmanager
def _errors_of_the_gateway() -> Iterator[None]:
    try:
        yield
    except SandboxRefusal as error:
        raise gateway.InvalidInput(str(error)) from None
    except SandboxEnded as error:
        raise gateway.InvalidInput(_SENTENCES[error.end]) from None
    except SandboxLost as error:
        raise gateway.Transient(f"The document parser: {error}") from error
