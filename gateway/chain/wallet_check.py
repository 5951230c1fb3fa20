"""Looks on the chain whether the wallet is a contract's address, where payments may be lost."""

import asyncio

import attrs
import structlog

from gateway.contracts import Chain
from gateway.errors import ChainUnavailable, ExecutionError
from gateway.settings import Settings

_RETRY_S = 5.0
_DELEGATION = bytes.fromhex("ef0100")
_DELEGATION_BYTES = 23
_TO_BUYERS = (
    "The gateway's wallet is not set up rightly, so nothing is sold now. Nothing was charged; "
    "do not pay."
)
_log = structlog.get_logger()


async def contract_problem(settings: Settings, chain: Chain) -> str | None:
    """Return what is wrong with a wallet that has code; None for one that may be paid.

    Raises `ChainUnavailable` without an answer.
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
    """Whether the code only delegates (EIP-7702): the account is still its key's."""
    return len(code) == _DELEGATION_BYTES and code.startswith(_DELEGATION)


@attrs.define
class WalletCheck:
    """Looks once; until the chain has answered, no payment is taken."""

    _settings: Settings
    _chain: Chain
    problem: str | None = None
    is_known: bool = False

    async def look_until_known(self) -> None:
        """Look now, and every few seconds while the chain is silent."""
        is_told = False
        while not self.is_known:
            try:
                await self._look()
            except ChainUnavailable as error:
                if not is_told:
                    _log.warning("wallet.not_checked", error=error.message, details=error.details)
                is_told = True
                await asyncio.sleep(_RETRY_S)

    async def check(self) -> None:
        """Raise `ExecutionError` for a wallet that must not be paid; looks, where it is unknown.

        Raises `ChainUnavailable` where the chain has not answered yet.
        """
        if not self.is_known:
            await self._look()
        self.check_known()

    def check_known(self) -> None:
        """Raise `ExecutionError` for a wallet that is known to be one that must not be paid."""
        if self.problem is not None:
            raise ExecutionError(_TO_BUYERS)

    async def _look(self) -> None:
        problem = await contract_problem(self._settings, self._chain)
        if problem is not None and not self.is_known:
            _log.error("wallet.is_contract", error=problem)
        self.problem, self.is_known = problem, True
