"""What keeps every x402 payment from being settled: the clock, the token, our wallet, our gas.

Looked at at the start and every minute, so that an unpaid request can be told without a call to
the chain. Each obstacle has two sentences: the operator's says what is wrong and what to do, the
caller's holds nothing of ours.
"""

import structlog

from gateway.contracts import CallReverted, Chain, Clock, Settler
from gateway.domain.eip3009 import IS_BLACKLISTED, PAUSED, word
from gateway.errors import ChainUnavailable, ExecutionError
from gateway.payments.periodic import Periodic

WARNED_S = 15  # of a clock that is off; blocks of Base are two seconds apart
STOPPED_S = 60  # a client's window of some minutes begins or ends too early then
_EVERY_S = 60.0
_AGAIN_S = 10.0  # the same while something is wrong
_CLOCK, _TOKEN, _WALLET, _SETTLER = "clock", "token", "wallet", "settler"
_DIRECT_WORKS = (
    "The gateway cannot settle x402 payments now; nothing was charged. "
    "A direct USDC transfer works."
)
_IS_PAUSED = "USDC is paused by its issuer: nothing can be paid now, and nothing was charged."
_CANNOT_RECEIVE = "The gateway's wallet cannot receive USDC now; nothing was charged."
_log = structlog.get_logger()


class Obstacles:
    """Knows what is in the way now; a chain that is silent is no news."""

    def __init__(self, chain: Chain, settler: Settler, wallet: str, now: Clock) -> None:
        self._chain = chain
        self._settler = settler
        self._wallet = wallet
        self._now = now
        self._known: dict[str, str] = {}  # kind: the operator's sentence
        self._said: dict[str, str] = {}  # kind: the caller's
        self._is_warned = False
        self._periodic = Periodic("x402-obstacles", self.look, _AGAIN_S, wait_first=True)

    @property
    def said(self) -> str | None:
        """The caller's sentence about what was in the way at the last look; None: nothing."""
        for kind in (_TOKEN, _WALLET, _CLOCK, _SETTLER):  # first where no direct transfer works
            if kind in self._said:
                return self._said[kind]
        return None

    def start(self) -> None:
        """Look every minute, more often while something is wrong; `look` is for the start."""
        self._periodic.start()

    async def stop(self) -> None:
        """Stop looking."""
        await self._periodic.stop()

    async def look(self) -> None:
        """Ask the chain and the settler. Raises `ChainUnavailable` where nothing can be known."""
        self._periodic.every_s = _AGAIN_S
        asked_at = self._now()
        newest = await self._chain.newest_head()
        self._note_clock(asked_at - newest.timestamp)
        is_paused = await is_true(self._chain, PAUSED)
        self._note(_TOKEN, "USDC is paused by its issuer." if is_paused else None, _IS_PAUSED)
        is_blacklisted = await is_true(self._chain, IS_BLACKLISTED + word(self._wallet))
        problem = (
            f"USDC blacklists {self._wallet}: it cannot receive any." if is_blacklisted else None
        )
        self._note(_WALLET, problem, _CANNOT_RECEIVE)
        try:
            await self._ask_settler()
        except ExecutionError:
            return
        if not self._known:
            self._periodic.every_s = _EVERY_S

    async def check(self) -> None:
        """Raise `ExecutionError` with the operator's sentence about what is in the way now."""
        for kind in (_CLOCK, _TOKEN, _WALLET):
            if kind in self._known:
                raise ExecutionError(self._known[kind])
        await self._ask_settler()

    async def _ask_settler(self) -> None:
        try:
            await self._settler.check_ready()
        except ChainUnavailable as error:
            raise ExecutionError(error.message) from error
        except ExecutionError as error:
            problem = error.details or error.message
            self._note(_SETTLER, problem, error.message)
            raise ExecutionError(problem) from error
        self._note(_SETTLER, None, "")

    def _note_clock(self, ahead_s: float) -> None:
        self._note(_CLOCK, clock_problem(ahead_s), _DIRECT_WORKS)
        is_off = abs(ahead_s) > WARNED_S
        if is_off and not self._is_warned:
            _log.warning("clock.off", seconds_ahead_of_newest_block=round(ahead_s))
        self._is_warned = is_off

    def _note(self, kind: str, problem: str | None, said: str) -> None:
        """Remember what is wrong, and log it once until it is right again."""
        if problem is None:
            self._said.pop(kind, None)
            if self._known.pop(kind, None) is not None:
                _log.info("x402.obstacle_gone", obstacle=kind)
            return
        if kind not in self._known:
            _log.warning("x402.stopped", obstacle=kind, problem=problem)
        self._known[kind], self._said[kind] = problem, said


def clock_problem(ahead_s: float) -> str | None:
    """Return why x402 stops, for a clock that is so far ahead of the newest block's time.

    A clock behind a block is wrong for certain. One ahead may be right, where the chain stands
    still; then nothing can be settled either.
    """
    if ahead_s < -STOPPED_S:
        return (
            f"This machine's clock is {-ahead_s:.0f} s behind the newest block. "
            "Set it right, e.g. by NTP; x402 is stopped until then."
        )
    if ahead_s > STOPPED_S:
        return (
            f"This machine's clock is {ahead_s:.0f} s ahead of the newest block. Set it right, "
            "e.g. by NTP; if it is right, the chain or every RPC endpoint has stopped. "
            "x402 is stopped until then."
        )
    return None


async def is_true(chain: Chain, question: bytes) -> bool:
    """Ask the token; one without this function is neither paused nor does it blacklist."""
    try:
        return bool(await chain.call_uint(question))
    except CallReverted:
        return False
