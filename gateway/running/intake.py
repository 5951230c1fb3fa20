"""Resources for reading requests before payment: threads for bodies, and checks of files."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

import attrs

from gateway.concurrency.threads import Threads
from gateway.domain import (
    DOCUMENT_FILE,
    PAGE,
    PICTURE_FILE,
    Attachment,
    FileKind,
    GenerationRequest,
)
from gateway.sandbox.fair_share import FairShare, Shares
from gateway.sandbox.kinds import FileReaders
from gateway.sandbox.pages import Pages
from gateway.sandbox.pictures import SentPictures

# As long as a quote is valid.
_TTL_S = 300.0
# Some 300 bytes each.
_MAX_CHECKED = 1000


@attrs.define(eq=False, repr=False)
class CheckedFiles:
    """Requests whose file passed the check, by client address."""

    _now: Callable[[], float] = time.monotonic
    # Time of the check, and the pages and measures of the file. Oldest first.
    _passed: OrderedDict[tuple[str, str], tuple[float, int | None, Mapping[str, float]]] = (
        attrs.field(factory=OrderedDict, init=False)
    )

    def find(self, address: str, slug: str, sent: GenerationRequest) -> GenerationRequest | None:
        """Return the request with its file's measures, or None if it must be checked.

        Per address, so that response times do not reveal other clients' files.
        """
        passed = self._passed.get((address, sent.fingerprint(slug)))
        if passed is None or self._now() - passed[0] > _TTL_S:
            return None
        return attrs.evolve(sent, pages=passed[1], measured=passed[2])

    def add(self, address: str, slug: str, checked: GenerationRequest) -> None:
        """Remember a request that passed."""
        key = address, checked.fingerprint(slug)
        self._passed[key] = self._now(), checked.pages, checked.measured
        self._passed.move_to_end(key)
        if len(self._passed) > _MAX_CHECKED:
            self._passed.popitem(last=False)


CHECKS = Shares(
    # Each may take 900 MB, and as much CPU as a paid document.
    slots=2,
    slots_per_address=1,
    # Each waits with a file of up to 7.5 MB.
    waiting=16,
    waiting_per_address=8,
    # Shorter than `Timing.validation_s`, which includes the check itself.
    wait_s=15.0,
    # An ordinary file takes half a second, the largest picture 1.5 s, and a scanned page 3 to 5 s.
    protected_s=6.0,
    # Two of the slowest files; in the long run a quarter of a CPU.
    budget_s=20.0,
    refill_per_s=0.25,
)


@attrs.frozen(eq=False, repr=False)
class ReadFile:
    """A file as providers get it, and what a price may count."""

    attachment: Attachment
    pages: int | None = None
    measured: Mapping[str, float] = attrs.field(factory=dict)


@attrs.define(eq=False, repr=False)
class Intake:
    """Limited resources for bodies and files that are not paid yet."""

    # Decodes and hashes large bodies.
    bodies: Threads = attrs.field(factory=lambda: Threads("bodies", 2))
    # Checks files, a fair share for each address.
    checks: FairShare = attrs.field(factory=lambda: FairShare(CHECKS))
    checked_files: CheckedFiles = attrs.field(factory=CheckedFiles)
    pages: Pages = attrs.field(factory=Pages)
    sent_pictures: SentPictures = attrs.field(factory=SentPictures)
    # Files of plugins' kinds.
    files: FileReaders = attrs.field(factory=FileReaders)

    async def read_file(
        self, kind: FileKind, attachment: Attachment, *, most_bytes: int
    ) -> ReadFile:
        """Identify and measure a file before payment; raises as `FileReaders.read` does."""
        if kind == DOCUMENT_FILE:
            return ReadFile(attachment, await self.pages.count(attachment))
        if kind == PICTURE_FILE:
            right, pixels = await self.sent_pictures.read(attachment, most_bytes=most_bytes)
            return ReadFile(right, measured={"pixels": pixels})
        read, measured = await self.files.read(kind, attachment, most_bytes)
        pages = measured.pop(PAGE.measure, None)
        return ReadFile(read, None if pages is None else math.ceil(pages), measured)

    async def close(self) -> None:
        """Stop the threads and child processes."""
        self.pages.close()
        self.sent_pictures.close()
        self.files.close()
        self.bodies.close()
