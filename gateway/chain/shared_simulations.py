"""Simulates the transfers of several sales in one `eth_call`, and reads whether payers have code.

The call has no recipient, so the node runs its data as the constructor of a contract, and returns
the constructor's result instead of storing it (a "deployless" call). The data is a program and the
calldata of each transfer. Not every endpoint accepts such a call.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import attrs
import structlog

from gateway.chain.decode import read_bytes
from gateway.chain.endpoints import Endpoint
from gateway.chain.retries import Cooldown, EndpointRefused, RetryTiming
from gateway.chain.smart_wallets import KEY_GAS, is_signed_by_key, key_call
from gateway.concurrency.awaiting import answer_caller, outlive
from gateway.contracts import CallReverted
from gateway.domain import Authorization
from gateway.domain.eip3009 import Network
from gateway.errors import ChainUnavailable

_MOST = 16
# A transfer waits this long for others, and only while another call is in progress.
_WAIT_S = 0.02
# A slower call is given up, and each of its transfers is simulated alone.
_PATIENCE_S = 1.0
# A call that is refused for load is retried for this long.
RETRY_S = 0.5
# An endpoint that does not take shared calls gets none for this long, longer after each attempt.
_REST = RetryTiming(first_cooldown_s=10.0, longest_cooldown_s=300.0)
# It gets none for this long after a call without an answer, or one that broke the endpoint.
_PAUSE_S = 5.0
# An endpoint that only fails for this long does not take them, whatever it answers.
_LASTING_S = 30.0
# What `decode` and a wrong count of flags raise.
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError)
# Of a transfer by a plain key: a selector and nine words.
TRANSFER_BYTES = 4 + 9 * 32
# What a transaction of its own leaves for the token's call, at least. So nothing succeeds here that
# would run out of gas there.
_TRANSFER_GAS = KEY_GAS - 21_000 - 16 * TRANSFER_BYTES
# For the program; each transfer gets `KEY_GAS`, more than the token's call may use.
_PROGRAM_GAS = 100_000
# Flags of a transfer.
SUCCEEDS, IS_PLAIN = 1, 2
# Memory: one calldata from 0, the flags from 0x140, one byte each.
_PROGRAM = """
61{size:04x}  PUSH2 size       position of the next calldata: the first one is behind the program
610140        PUSH2 0x140      where its flags go
5b            JUMPDEST         next, at 0x06
38            CODESIZE
82            DUP3
10            LT               is the position before the end?
6016          PUSH1 transfer
57            JUMPI
610140        PUSH2 0x140
90            SWAP1
03            SUB              count of flags
610140        PUSH2 0x140
f3            RETURN           the flags
5b            JUMPDEST         transfer, at 0x16
61{data:04x}  PUSH2 length
82            DUP3             from the position
6000          PUSH1 0          to memory
39            CODECOPY
6004          PUSH1 4
51            MLOAD            the payer, the first argument
3b            EXTCODESIZE      23 for an account that delegates (EIP-7702)
15            ISZERO
6001          PUSH1 1
1b            SHL              2 if the account is plain
6000          PUSH1 0          no result is wanted
6000          PUSH1 0
61{data:04x}  PUSH2 length
6000          PUSH1 0          the calldata in memory
6000          PUSH1 0          no ETH
73{token}     PUSH20 token
62{gas:06x}   PUSH3 gas        its code cannot use the gas of the next ones
f1            CALL             1 if the transfer succeeds
17            OR               the flags
81            DUP2
53            MSTORE8
6001          PUSH1 1
01            ADD              where the next flags go
90            SWAP1
61{data:04x}  PUSH2 length
01            ADD              position of the next calldata
90            SWAP1
6006          PUSH1 next
56            JUMP
"""
_log = structlog.get_logger()

Passed = frozenset[Authorization]
AskInOrder = Callable[[Callable[[Endpoint], Awaitable[Passed | None]]], Awaitable[Passed | None]]
"""Asks the endpoints in order until one does not rest, and retries while they refuse."""


def _assemble(token: str) -> bytes:
    """Return the program for a token."""
    codes = [line.split()[0] for line in _PROGRAM.strip().splitlines()]
    fields = {"data": TRANSFER_BYTES, "token": token.removeprefix("0x"), "gas": _TRANSFER_GAS}
    size = len("".join(codes).format(size=0, **fields)) // 2
    return bytes.fromhex("".join(codes).format(size=size, **fields))


def _read_passed(transfers: Sequence[Authorization], flags: bytes) -> Passed:
    """Return the transfers that succeed, of plain accounts. `ValueError` for other flags."""
    both = SUCCEEDS | IS_PLAIN
    return frozenset(
        transfer for transfer, flag in zip(transfers, flags, strict=True) if flag == both
    )


@attrs.define
class _Rest:
    """How long an endpoint gets no shared calls."""

    _place: int
    _cooldown: Cooldown = attrs.field(factory=lambda: Cooldown(_REST))
    # When the failures began that no success has followed, by the loop's clock.
    _failing_since: float | None = None

    def is_on(self) -> bool:
        return self._cooldown.until > asyncio.get_running_loop().time()

    def begin(self, why: Exception) -> None:
        """Rest, longer after each failure: the endpoint does not take such calls."""
        self._log(why)
        # Calls that fail together count once.
        if not self.is_on():
            now = asyncio.get_running_loop().time()
            self._cooldown.begin(now, least_s=0.0, retry_after_s=0.0)

    def pause(self, why: Exception) -> None:
        """Rest briefly: the endpoint may take such calls, or may not."""
        if self.doubt(why):
            return
        self._log(why)
        now = asyncio.get_running_loop().time()
        self._cooldown.until = max(self._cooldown.until, now + _PAUSE_S)

    def doubt(self, why: Exception) -> bool:
        """Note a failure that may be of all calls; begin a rest if it lasts. Returns whether."""
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since = now
        is_lasting = now - self._failing_since > _LASTING_S
        if is_lasting:
            self.begin(why)
        return is_lasting

    def end(self) -> None:
        self._cooldown.end()
        self._failing_since = None

    def _log(self, why: Exception) -> None:
        """Log a failure, once until a call succeeds."""
        if not self._cooldown.until:
            _log.info("rpc.not_shared", endpoint=self._place, error=type(why).__name__)


@attrs.define(eq=False)
class _Group:
    """Transfers that will share a call."""

    transfers: dict[Authorization, None] = attrs.field(factory=dict)
    is_closed: asyncio.Event = attrs.field(factory=asyncio.Event)
    passed: "asyncio.Future[Passed]" = attrs.field(init=False)
    # The rest of an endpoint that has not answered yet.
    silent: "_Rest | None" = None

    def __attrs_post_init__(self) -> None:
        self.passed = asyncio.get_running_loop().create_future()

    def takes(self, transfer: Authorization) -> bool:
        """Whether there is room, and no payer gets money from another transfer of this call."""
        return len(self.transfers) < _MOST and not any(
            transfer.sender == other.recipient or transfer.recipient == other.sender
            for other in self.transfers
        )

    def add(self, transfer: Authorization) -> None:
        self.transfers[transfer] = None
        if len(self.transfers) == _MOST:
            self.is_closed.set()


class SharedSimulations:
    """Groups the transfers that are asked for at about the same time.

    A transfer runs after others in one state, which can make it fail, but not succeed: the token
    moves money only from an account whose own authorization it is, to one that pays nothing here,
    and a payer's code runs in static calls, with a gas limit.
    """

    def __init__(self, network: Network, ask_in_order: AskInOrder) -> None:
        self._network = network
        self._ask_in_order = ask_in_order
        self._program = _assemble(network.token)
        # The group that other transfers may still join.
        self._open: _Group | None = None
        # The groups of the transfers that are not sent yet.
        self._unsent: dict[Authorization, _Group] = {}
        self._tasks: set[asyncio.Task[Passed]] = set()
        self._in_progress = 0
        # By endpoint.
        self._rests: dict[int, _Rest] = {}
        # Of all endpoints after one that rests, once one of them was silent before it was asked.
        self._later_ones = Cooldown(_REST)

    async def simulate(self, transfer: Authorization) -> bool:
        """Return whether it succeeds and its payer's account is plain; False if that is unknown.

        Everything is read after this is called.
        """
        if not is_signed_by_key(transfer, self._network):
            return False
        group = self._unsent.get(transfer) or self._join(transfer)
        return transfer in await outlive(group.passed)

    async def close(self) -> None:
        """End the calls; their transfers did not pass."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _join(self, transfer: Authorization) -> _Group:
        group = self._open
        if group is None or not group.takes(transfer):
            if group is not None:
                group.is_closed.set()
            group = self._open = _Group()
            task = asyncio.create_task(self._run(group), name="shared-simulation")
            self._tasks.add(task)
            task.add_done_callback(partial(self._end, group))
        group.add(transfer)
        self._unsent[transfer] = group
        return group

    def _end(self, group: _Group, task: "asyncio.Task[Passed]") -> None:
        """Give the callers their answers; none passed if the task was cancelled."""
        self._tasks.discard(task)
        self._shut(group)
        cancelled = frozenset[Authorization]()
        answer_caller(
            group.passed, cancelled if task.cancelled() else task.exception() or task.result()
        )

    def _shut(self, group: _Group) -> None:
        """Let nothing join the group any more."""
        if self._open is group:
            self._open = None
        for transfer in group.transfers:
            if self._unsent.get(transfer) is group:
                del self._unsent[transfer]

    async def _run(self, group: _Group) -> Passed:
        """Wait until the group is closed, then ask."""
        if self._in_progress:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    await group.is_closed.wait()
        # A sale asks twice, and the second time one turn of the loop later.
        await asyncio.sleep(0)
        self._shut(group)
        self._in_progress += 1
        try:
            async with asyncio.timeout(_PATIENCE_S):
                passed = await self._ask_in_order(partial(self._ask, group=group))
                return passed or frozenset()
        except ChainUnavailable:
            return frozenset()
        except TimeoutError as silence:
            if group.silent is not None:
                group.silent.pause(silence)
            elif self._later_ones.until <= (now := asyncio.get_running_loop().time()):
                # Calls that are silent together count once.
                self._later_ones.begin(now, least_s=0.0, retry_after_s=0.0)
            return frozenset()
        finally:
            self._in_progress -= 1
            if self._open is not None:
                self._open.is_closed.set()

    async def _ask(self, endpoint: Endpoint, group: _Group) -> Passed | None:
        """Return the transfers that passed; none after a failure, and None if the endpoint rests.

        Raises `EndpointRefused` if the endpoint is busy, which says nothing about such calls.
        """
        rest = self._rests.setdefault(endpoint.place, _Rest(endpoint.place))
        if rest.is_on():
            has_later = self._later_ones.until <= asyncio.get_running_loop().time()
            return None if has_later else frozenset()
        transfers = tuple(group.transfers)
        calls = b"".join(key_call(one, self._network).data for one in transfers)
        call = {
            "data": "0x" + (self._program + calls).hex(),
            "gas": hex(_PROGRAM_GAS + len(transfers) * KEY_GAS),
        }
        group.silent = rest
        try:
            answer = await endpoint.request("eth_call", call, "latest", is_optional=True)
            passed = _read_passed(transfers, read_bytes(answer))
        except (CallReverted, ChainUnavailable, *_MALFORMED) as error:
            group.silent = None
            if not isinstance(error, EndpointRefused):
                rest.begin(error)
            elif error.is_general:
                rest.doubt(error)
                raise
            else:
                rest.pause(error)
            return frozenset()
        rest.end()
        self._later_ones.end()
        return passed
