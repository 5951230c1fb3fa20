"""Why the USDC contract refuses a transfer: it is paused, or it blacklists an account."""

from gateway.contracts.chain import Chain
from gateway.domain.eip3009 import IS_BLACKLISTED, word
from gateway.errors import ExecutionError, PaymentRequired

# Both are USDC's own words, in lower case.
_PAUSED = "pausable: paused"
_BLACKLISTED = "blacklistable: account is blacklisted"


async def explain_by_token(chain: Chain, refusal: str, sender: str) -> None:
    """Raise why the token refused a transfer; return if it is neither paused nor blacklists.

    Raises `PaymentRequired` if the token blacklists the payer, and `ExecutionError` if the token is
    paused or blacklists our wallet. Raises `ChainUnavailable`.
    """
    said = refusal.lower()
    if _PAUSED in said:
        raise ExecutionError(
            "USDC is paused by its issuer: nothing can be paid now, and nothing was charged."
        )
    if _BLACKLISTED not in said:
        return
    if await chain.call_uint(IS_BLACKLISTED + word(sender)):
        raise PaymentRequired(
            "The USDC contract blacklists the payer's account. Nothing was charged; pay from "
            "another account."
        )
    raise ExecutionError("The gateway's wallet cannot receive USDC now; nothing was charged.")
