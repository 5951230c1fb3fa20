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
from gateway.chain.retries import Cooldown, RetryTiming
from gateway.chain.smart_wallets import KEY_GAS, is_signed_by_key, key_call
from gateway.concurrency.awaiting import outlive
from gateway.contracts import CallReverted
from gateway.domain import Authorization
from gateway.domain.eip3009 import Network
from gateway.errors import ChainUnavailable

_MOST = 16
# A transfer waits this long for others, and only while another call is in progress.
_WAIT_S = 0.02
# A slower call is given up, and each of its transfers is simulated alone.
_PATIENCE_S = 1.0
# After a failed call an endpoint gets no shared calls for this long, longer after each failure.
_REST = RetryTiming(first_cooldown_s=10.0, longest_cooldown_s=300.0)
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

AskFirst = Callable[
    [Callable[[Endpoint], Awaitable[frozenset[Authorization]]]], Awaitable[frozenset[Authorization]]
]
"""Asks the first endpoint that is available, once."""


def _assemble(token: str) -> bytes:
    """Return the program for a token."""
    codes = [line.split()[0] for line in _PROGRAM.strip().splitlines()]
    fields = {"data": TRANSFER_BYTES, "token": token.removeprefix("0x"), "gas": _TRANSFER_GAS}
    size = len("".join(codes).format(size=0, **fields)) // 2
    return bytes.fromhex("".join(codes).format(size=size, **fields))


def _read_passed(transfers: Sequence[Authorization], flags: bytes) -> frozenset[Authorization]:
    """Return the transfers that succeed, of plain accounts. `ValueError` for other flags."""
    both = SUCCEEDS | IS_PLAIN
    return frozenset(
        transfer for transfer, flag in zip(transfers, flags, strict=True) if flag == both
    )


@attrs.define(eq=False)
class _Group:
    """Transfers that will share a call."""

    transfers: dict[Authorization, None] = attrs.field(factory=dict)
    is_closed: asyncio.Event = attrs.field(factory=asyncio.Event)
    passed: "asyncio.Task[frozenset[Authorization]]" = attrs.field(init=False)

    def takes(self, transfer: Authorization) -> bool:
        """Whether there is room, and no payer gets money from another transfer of this call."""
        if transfer in self.transfers:
            return True
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

    def __init__(self, network: Network, ask_first: AskFirst) -> None:
        self._network = network
        self._ask_first = ask_first
        self._program = _assemble(network.token)
        # The group that others may still join.
        self._open: _Group | None = None
        self._in_progress = 0
        # By endpoint.
        self._rests: dict[int, Cooldown] = {}

    async def simulate(self, transfer: Authorization) -> bool:
        """Return whether it succeeds and its payer's account is plain; False if that is unknown.

        Everything is read after this is called.
        """
        if not is_signed_by_key(transfer, self._network):
            return False
        group = self._open
        if group is None or not group.takes(transfer):
            if group is not None:
                group.is_closed.set()
            group = self._open = _Group()
            group.passed = asyncio.create_task(self._run(group), name="shared-simulation")
        group.add(transfer)
        return transfer in await outlive(group.passed)

    async def _run(self, group: _Group) -> frozenset[Authorization]:
        """Wait until the group is closed, then ask."""
        # A sale asks twice, and the second time one turn of the loop later.
        await asyncio.sleep(0)
        if self._in_progress:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    await group.is_closed.wait()
        if self._open is group:
            self._open = None
        self._in_progress += 1
        try:
            return await self._ask_first(partial(self._ask, transfers=tuple(group.transfers)))
        except ChainUnavailable:
            return frozenset()
        finally:
            self._in_progress -= 1
            if self._open is not None:
                self._open.is_closed.set()

    async def _ask(
        self, endpoint: Endpoint, transfers: Sequence[Authorization]
    ) -> frozenset[Authorization]:
        """Return the transfers that passed; none if the endpoint does not take such calls now."""
        now = asyncio.get_running_loop().time
        rest = self._rests.setdefault(endpoint.place, Cooldown(_REST))
        if max(rest.until, endpoint.cooldown.until, endpoint.cooldown.retry_after) > now():
            return frozenset()
        calls = b"".join(key_call(one, self._network).data for one in transfers)
        call = {
            "data": "0x" + (self._program + calls).hex(),
            "gas": hex(_PROGRAM_GAS + len(transfers) * KEY_GAS),
        }
        try:
            async with asyncio.timeout(_PATIENCE_S):
                answer = await endpoint.request("eth_call", call, "latest")
            passed = _read_passed(transfers, read_bytes(answer))
        except (CallReverted, ChainUnavailable, TimeoutError, ValueError, AttributeError) as error:
            if not rest.failures:
                kind = type(error).__name__
                _log.info("rpc.not_shared", endpoint=endpoint.place, error=kind)
            # Calls that fail together count once.
            if rest.until <= now():
                rest.begin(now(), least_s=0.0, retry_after_s=0.0)
            return frozenset()
        rest.end()
        return passed
