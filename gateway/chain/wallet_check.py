"""Asks the chain whether the wallet is the address of a contract, where payments may be lost."""

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
    "The gateway's wallet is not set up correctly, so nothing is sold now. Nothing was charged; "
    "do not pay."
)
_log = structlog.get_logger()


async def contract_problem(settings: Settings, chain: Chain) -> str | None:
    """Return what is wrong with a wallet that has code; None for a wallet that may be paid.

    Raises `ChainUnavailable` where the chain does not answer.
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
    """Tell whether the code only delegates (EIP-7702): the account's key still controls it."""
    return len(code) == _DELEGATION_BYTES and code.startswith(_DELEGATION)


@attrs.define
class WalletCheck:
    """Checks the wallet once. Until the chain has answered, the gateway takes no payment."""

    _settings: Settings
    _chain: Chain
    problem: str | None = None
    is_known: bool = False
    retry_s: float = attrs.field(default=_RETRY_S, kw_only=True)
    """Seconds between two looks while the chain does not answer."""

    async def look_until_known(self) -> None:
        """Look now, and again every few seconds while the chain does not answer."""
        is_logged = False
        while not self.is_known:
            try:
                await self._look()
            except ChainUnavailable as error:
                if not is_logged:
                    _log.warning("wallet.not_checked", error=error.message, details=error.details)
                is_logged = True
                await asyncio.sleep(self.retry_s)

    async def check(self) -> None:
        """Raise `ExecutionError` for a wallet that must not be paid; look first if not known.

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
