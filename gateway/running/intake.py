"""The resources for reading requests: threads for bodies, and the checks of files."""

import time
from collections import OrderedDict
from collections.abc import Callable

import attrs

from gateway.concurrency.threads import Threads
from gateway.domain import GenerationRequest
from gateway.sandbox.fair_share import FairShare, Shares
from gateway.sandbox.pages import Pages
from gateway.sandbox.sent_pictures import SentPictures

# As long as a price is valid.
_KEPT_S = 300.0
# Some 300 bytes each.
_MOST_CHECKED = 1000


@attrs.define
class CheckedFiles:
    """Requests with a file that passed, by the address that sent them."""

    _now: Callable[[], float] = time.monotonic
    # When a request was checked, and the pages of its file. The oldest is first.
    _passed: OrderedDict[tuple[str, str], tuple[float, int | None]] = attrs.field(
        factory=OrderedDict, init=False
    )

    def find(self, address: str, slug: str, sent: GenerationRequest) -> GenerationRequest | None:
        """Return the request with its pages counted, or None if it must be checked.

        One client cannot learn by the time of an answer what another one has sent.
        """
        checked_at, pages = self._passed.get((address, sent.fingerprint(slug)), (None, None))
        if checked_at is None or self._now() - checked_at > _KEPT_S:
            return None
        return attrs.evolve(sent, pages=pages)

    def add(self, address: str, slug: str, checked: GenerationRequest) -> None:
        """Remember a request that has passed."""
        key = address, checked.fingerprint(slug)
        self._passed[key] = self._now(), checked.pages
        self._passed.move_to_end(key)
        if len(self._passed) > _MOST_CHECKED:
            self._passed.popitem(last=False)


CHECKS = Shares(
    # Each may take 600 MB, and as much processor as a paid document.
    slots=2,
    slots_per_address=1,
    # Each waits with a file of up to 7.5 MB.
    waiting=16,
    waiting_per_address=8,
    # Shorter than `Timing.validation_s`, which also has the check in it.
    wait_s=15.0,
    # An ordinary file takes half a second, and the largest picture 1.5 s.
    undisturbed_s=3.0,
    # Four files that take as long as they may; a quarter of a processor in the long run.
    budget_s=20.0,
    regained=0.25,
)


@attrs.define
class Intake:
    """The limited means by which bodies and files are read before their payment."""

    # Decode and hash large bodies.
    bodies: Threads = attrs.field(factory=lambda: Threads("bodies", 2))
    # Check files, one address after the other.
    checks: FairShare = attrs.field(factory=lambda: FairShare(CHECKS))
    checked_files: CheckedFiles = attrs.field(factory=CheckedFiles)
    pages: Pages = attrs.field(factory=Pages)
    sent_pictures: SentPictures = attrs.field(factory=SentPictures)

    async def close(self) -> None:
        """Stop the threads and child processes."""
        self.pages.close()
        self.sent_pictures.close()
        self.bodies.close()
