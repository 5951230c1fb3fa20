"""Finds problems that prevent payments: of the chain, the clock, the token, the wallet or gas.

They are checked at startup and every minute, and the newest block every ten seconds, so a 402 needs
no RPC call. Each has two messages: the operator's names the problem and its fix; the buyer's
contains no internals.
"""

import asyncio
from collections.abc import Awaitable

import attrs
import structlog

from gateway.chain.keys import known_problem
from gateway.concurrency.periodic import Periodic
from gateway.contracts import CallReverted, Chain, Clock, Selling, Settler
from gateway.domain import Block
from gateway.domain.eip3009 import IS_BLACKLISTED, PAUSED, word
from gateway.errors import ChainUnavailable, ExecutionError
from gateway.payments.stopped_chain import BUYER_S, StoppedChain
from gateway.settings import Settings

# A warning is logged if the clock is off by this many seconds. Blocks carry whole seconds.
WARNED_S = 15

# x402 stops if the clock is off by this many seconds: an authorization's window of a few minutes
# would begin too late or end too early.
STOPPED_S = 60
_CHAIN, _STOPPED, _CLOCK, _TOKEN = "chain", "stopped", "clock", "token"
_WALLET, _SETTLER = "wallet", "settler"
# These stop direct transfers too.
_STOP_ALL = (_CHAIN, _STOPPED, _TOKEN, _WALLET)
_DIRECT_WORKS = "The gateway cannot settle x402 payments now. A direct USDC transfer works."
_CHAIN_DOWN = "The gateway cannot read the chain now, so it sells nothing. Try again later."
_NO_BLOCKS = (
    "This gateway sees no new blocks of the chain now, so it sells nothing. "
    "Make no transfer; the hash of an earlier one can be sent again later."
)
_USDC_PAUSED = "USDC is paused by its issuer: nothing can be paid now."
_CANNOT_RECEIVE = "The gateway's wallet cannot receive USDC now."
_RETRY_S = 5.0
_DELEGATION = bytes.fromhex("ef0100")
_DELEGATION_BYTES = 23
_WRONG_WALLET = "The gateway's wallet is not set up correctly, so nothing is sold now. Do not pay."
_log = structlog.get_logger()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ObstacleTiming:
    """Seconds between two checks."""

    every_s: float = 60.0
    # Between two reads of the newest block, and two checks while there is an obstacle.
    again_s: float = 10.0
    # After a resume, while the clock lags: a check of it takes a second or two, too.
    clock_tries: int = 6
    clock_pause_s: float = 0.5


@attrs.define(eq=False, slots=False, repr=False)
class Obstacles:
    """The obstacles found by the last check. If the chain is unreachable, the others stay."""

    _chain: Chain
    _settler: Settler
    _wallet: str
    _now: Clock
    # GATEWAY_TX_PATIENCE.
    _tx_patience_s: float = attrs.field(default=4.0, kw_only=True)
    timing: ObstacleTiming = attrs.field(factory=ObstacleTiming, kw_only=True)
    stopped_chain: StoppedChain = attrs.field(init=False)
    # By kind: the messages for the operator and for buyers.
    _known: dict[str, tuple[str, str]] = attrs.field(factory=dict, init=False)
    _is_warned: bool = attrs.field(default=False, init=False)
    _is_clock_right: bool = attrs.field(default=False, init=False)
    # When all of them are checked again, in loop time.
    _due_at: float = attrs.field(default=0.0, init=False)

    @stopped_chain.default
    def _watch_blocks(self) -> StoppedChain:
        return StoppedChain(chain=self._chain, stale_s=self._tx_patience_s + BUYER_S)

    def __attrs_post_init__(self) -> None:
        every_s = self.timing.again_s
        self._periodic = Periodic("x402-obstacles", self._check, every_s, wait_first=True)

    @property
    def buyer_message(self) -> str | None:
        """The buyers' message about the most important obstacle, or None."""
        kinds = (*_STOP_ALL, _CLOCK, _SETTLER)
        return next((self._known[kind][1] for kind in kinds if kind in self._known), None)

    @property
    def selling(self) -> Selling:
        """The payments that are still possible."""
        if not self._known:
            return "everything"
        return "nothing" if any(kind in self._known for kind in _STOP_ALL) else "transfers"

    @property
    def transfer_problem(self) -> str | None:
        """The buyers' message while a new transfer cannot be seen, or None."""
        return self._known[_STOPPED][1] if _STOPPED in self._known else None

    def start(self) -> None:
        """Check every minute, and more often while there is an obstacle.

        In between, only the newest block is read. The first check comes after a pause; the app
        calls `refresh` at startup.
        """
        self._periodic.start()

    async def stop(self) -> None:
        """Stop the checks."""
        await self._periodic.stop()

    async def _check(self) -> None:
        """Check everything if that is due or an obstacle is known, else only the newest block."""
        if self._known or asyncio.get_running_loop().time() >= self._due_at:
            await self.refresh()
        elif not self.stopped_chain.fits(await self._answered(self._chain.head()), self._now()):
            await self._check_blocks()

    async def refresh(self) -> None:
        """Check the chain and the settler now. Raises `ChainUnavailable`."""
        await self._check_blocks()
        is_paused = await is_true(self._chain, PAUSED)
        self._note(_TOKEN, "USDC is paused by its issuer." if is_paused else None, _USDC_PAUSED)
        is_blacklisted = await is_true(self._chain, IS_BLACKLISTED + word(self._wallet))
        problem = (
            f"USDC blacklists {self._wallet}: it cannot receive any." if is_blacklisted else None
        )
        self._note(_WALLET, problem, _CANNOT_RECEIVE)
        try:
            await self._check_settler()
        except ExecutionError:
            return
        if not self._known:
            self._due_at = asyncio.get_running_loop().time() + self.timing.every_s

    async def refresh_patiently(self) -> None:
        """Check now, and again for some seconds while this machine's clock lags.

        It may lag after a resume until NTP sets it. Raises `ChainUnavailable`.
        """
        self._is_clock_right = False
        for _ in range(self.timing.clock_tries):
            await self.refresh()
            if self.is_clock_right:
                break
            await asyncio.sleep(self.timing.clock_pause_s)

    @property
    def is_clock_right(self) -> bool:
        """Whether this machine's clock fitted the newest block at the last check.

        False while that is unknown: before the first check, and while the chain does not answer or
        makes no blocks.
        """
        return self._is_clock_right

    async def _check_blocks(self) -> None:
        """Note whether the chain answers and makes blocks, and whether this clock fits them."""
        now = self._now()
        newest = await self._answered(self._chain.newest_head())
        if not self.stopped_chain.fits(newest, now):
            # Until it is judged below, which may fail.
            self._is_clock_right = False
        problem = await self.stopped_chain.find_problem(newest, now)
        self._note(_STOPPED, problem, _NO_BLOCKS)
        if problem is None:
            self._note_clock(now - newest.timestamp)

    async def _answered(self, asked: Awaitable[Block]) -> Block:
        """Return the chain's answer, and note whether there is one."""
        try:
            block = await asked
        except ChainUnavailable:
            self.note_unreachable()
            raise
        self._note(_CHAIN, None, "")
        return block

    def note_unreachable(self) -> None:
        """Note that the chain is unreachable. The next successful check clears it."""
        self._is_clock_right = False
        self._note(_CHAIN, "No RPC endpoint gives a usable answer.", _CHAIN_DOWN)

    async def check(self) -> None:
        """Raise `ExecutionError` with the operator's message if x402 payments cannot be settled.

        Checks the settler now; uses the last check of blocks, clock, token and wallet.
        """
        for kind in (_STOPPED, _CLOCK, _TOKEN, _WALLET):
            if kind in self._known:
                raise ExecutionError(self._known[kind][0])
        await self._check_settler()

    async def _check_settler(self) -> None:
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
        problem = clock_problem(ahead_s)
        self._is_clock_right = problem is None
        self._note(_CLOCK, problem, _DIRECT_WORKS)
        is_off = abs(ahead_s) > WARNED_S
        if is_off and not self._is_warned:
            _log.warning("clock.off", seconds_ahead_of_newest_block=round(ahead_s))
        self._is_warned = is_off

    def _note(self, kind: str, problem: str | None, buyer_message: str) -> None:
        """Keep both messages, or drop them if `problem` is None. Log each change once."""
        if problem is None:
            if self._known.pop(kind, None) is not None:
                _log.info("settlement.ready", obstacle=kind)
            return
        if kind not in self._known:
            _log.warning("settlement.not_ready", obstacle=kind, problem=problem)
        self._known[kind] = problem, buyer_message


def clock_problem(ahead_s: float) -> str | None:
    """Return the operator's message if the clock is too far off the newest block, or None.

    A clock behind a block is wrong. A clock ahead of it may be right if the chain has stopped, but
    then nothing can be settled either.
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


async def is_true(chain: Chain, call: bytes) -> bool:
    """Call a boolean function of the token. A token without the function counts as False.

    Raises `ChainUnavailable`.
    """
    try:
        return bool(await chain.call_uint(call))
    except CallReverted:
        return False


async def contract_problem(settings: Settings, chain: Chain) -> str | None:
    """Return the operator's message if the wallet is a contract that must not be paid, or None.

    Raises `ChainUnavailable`.
    """
    if settings.wallet_is_contract:
        return None
    code = await chain.code(settings.wallet_key)
    if not code or _is_delegation(code):
        return None
    return (
        f"GATEWAY_WALLET {settings.wallet} is a contract on {settings.network}, and payments to "
        "most contracts are lost: set your wallet's address, or, if the contract is yours and "
        "can send USDC on, GATEWAY_WALLET_IS_CONTRACT=true."
    )


def _is_delegation(code: bytes) -> bool:
    """Whether the code only delegates (EIP-7702), so the account's key still controls it."""
    return len(code) == _DELEGATION_BYTES and code.startswith(_DELEGATION)


@attrs.define(eq=False, repr=False)
class WalletCheck:
    """Checks the wallet once. Until that has succeeded, the gateway takes no payment."""

    _settings: Settings
    _chain: Chain
    problem: str | None = None
    is_known: bool = False
    retry_s: float = attrs.field(default=_RETRY_S, kw_only=True)
    """Seconds between two attempts while the chain is unreachable."""

    async def check_until_known(self) -> None:
        """Check now; retry until the chain answers."""
        is_logged = False
        while not self.is_known:
            try:
                await self._read_chain()
            except ChainUnavailable as error:
                if not is_logged:
                    _log.warning("wallet.not_checked", error=error.message, details=error.details)
                is_logged = True
                await asyncio.sleep(self.retry_s)

    async def check(self) -> None:
        """Raise `ExecutionError` if the wallet must not be paid. Reads the chain if needed.

        Raises `ChainUnavailable`.
        """
        if not self.is_known:
            await self._read_chain()
        self.check_known()

    def check_known(self) -> None:
        """Raise `ExecutionError` if the wallet must not be paid, as far as known."""
        if self.problem is not None:
            raise ExecutionError(_WRONG_WALLET)

    async def _read_chain(self) -> None:
        known = await known_problem(self._settings, self._chain)
        problem = known or await contract_problem(self._settings, self._chain)
        if not self.is_known:
            if known is not None:
                _log.error("wallet.is_known", error=known)
            elif problem is not None:
                _log.error("wallet.is_contract", error=problem)
        self.problem, self.is_known = problem, True
