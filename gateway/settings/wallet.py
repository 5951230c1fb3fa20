"""What the wallet's address must be like, as far as it is known without the chain."""

from gateway.domain.eip3009 import NETWORKS, checksum_address
from gateway.errors import SettingsError
from gateway.settings.model import Settings


def check_wallet(settings: Settings) -> None:
    """Raise `SettingsError` for a mistyped address, and for the address of a token contract."""
    digits = settings.wallet.removeprefix("0x")
    is_mixed_case = digits not in (digits.lower(), digits.upper())
    if is_mixed_case and settings.wallet != checksum_address(settings.wallet):
        raise SettingsError(
            f"GATEWAY_WALLET is {settings.wallet}, whose upper and lower case do not fit its "
            "digits (EIP-55), so a character of it is wrong: copy the address again."
        )
    for network in NETWORKS.values():
        if settings.wallet_key == network.token:
            raise SettingsError(
                f"GATEWAY_WALLET is the address of the USDC contract on {network.name}, where "
                "every payment would be lost: set the address of your own wallet."
            )
