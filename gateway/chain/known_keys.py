"""Recognizes addresses without an owner, and private keys that are public.

On a real chain, programs take money from known keys within seconds.
"""

import re

from gateway.errors import SettingsError
from gateway.settings import Settings, is_chain_local

# Accounts of the default mnemonics of Hardhat and Anvil, then of Ganache; last of the keys 1 to 10.
_DIGITS = """
    f39fd6e51aad88f6f4ce6ab8827279cfffb92266 70997970c51812dc3a010c7d01b50e0d17dc79c8
    3c44cdddb6a900fa2b585dd299e03d12fa4293bc 90f79bf6eb2c4f870365e785982e1f101e93b906
    15d34aaf54267db7d7c367839aaf71a00a2c6a65 9965507d1a55bcc2695c58ba16fb37d819b0a4dc
    976ea74026e726554db657fa54763abd0c3a0aa9 14dc79964da2c08b23698b3d3cc7ca32193d9955
    23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f a0ee7a142d267c1f36714e4a8f75612f20a79720
    bcd4042de499d14e55001ccbb24a551f3b954096 71be63f3384f5fb98995898a86b02fb2426c5788
    fabb0ac9d68b0b445fb7357272ff202c5651694a 1cbd3b2770909d4e10f157cabc84c7264073c9ec
    df3e18d64bc6a983f673ab319ccae4f1a57c7097 cd3b766ccdd6ae721141f452c550ca635964ce71
    2546bcd3c84621e976d8185a91a922ae77ecec30 bda5747bfd65f08deb54cb465eb87d40e51b197e
    dd2fd4581271e230360230f9337d5c0430bf44c0 8626f6940e2eb28930efb4cef49b2d1f2c9c1199
    90f8bf6a479f320ead074411a4b0e7944ea8c9c1 ffcf8fdee72ac11b5c542428b35eef5769c409f0
    22d491bde2303f2f43325b2108d26f1eaba1e32b e11ba2b4d45eaed5996cd0823791e0c93114882d
    d03ea8624c8c5987235048901fb614fdca89b117 95ced938f7991cd0dfcb48f0a06a40fa1af46ebc
    3e5e9111ae8eb78fe1cc3bb8915d5d461f3ef9a9 28a8746e75304c0780e011bed21c72cd78cd535e
    aca94ef8bd5ffee41947b4585a84bda5a3d3da6e 1df62f291b2e969fb0849d99d9ce41e2f137006e
    7e5f4552091a69125d5dfcb7b8c2659029395bdf 2b5ad5c4795c026514f8317c7a215e218dccd6cf
    6813eb9362372eef6200f3b1dbc3f819671cba69 1eff47bc3a10a45d4b230b5d10e37751fe6aa718
    e1ab8145f7e55dc933d51a18c793f901a3a0b276 e57bfe9f44b819898f47bf37e5af72a0783e1141
    d41c057fd1c78805aac12b0a94a405c0461a6fbb f1f6619b38a98d6de0800f1defc0a6399eb6d30c
    f7edc8fa1ecc32967f827c9043fcae6ba73afa5c 4cceba2d7d2b4fdce4304d3e09a1fea9fbeb1528
"""
_KNOWN = frozenset(f"0x{digits}" for digits in _DIGITS.split())
# Up to 16 digits, repeated to the end: 0x1111… and 0xdeadbeefdeadbeef…
_PATTERN = re.compile(r"([0-9a-f]{1,16}?)\1{3,}")
# Precompiled contracts, and 0x…dead.
_SMALL = 2**32


def refuse_known_wallet(settings: Settings, *, is_play: bool | None = None) -> None:
    """Raise `SettingsError` if the wallet has no owner, or its private key is public.

    `is_play` is whether the chain has play money only, by default one that is on this machine.
    """
    is_play = is_chain_local(settings) if is_play is None else is_play
    if is_play or not is_known_address(settings.wallet_key):
        return
    raise SettingsError(
        f"GATEWAY_WALLET is {settings.wallet}, an address from examples: nobody owns it, or "
        "everybody knows its private key, so every payment would be lost. Set the address of your "
        "own wallet."
    )


def is_known_address(address: str) -> bool:
    """Whether a lower-case address is an example, or the account of a known key."""
    digits = address.removeprefix("0x")
    is_example = _PATTERN.fullmatch(digits) is not None or int(digits, 16) < _SMALL
    return is_example or address in _KNOWN


def is_known_key(secret: bytes, address: str) -> bool:
    """Whether a private key, whose address is given, is an example or a tool's default."""
    is_example = _PATTERN.fullmatch(secret.hex()) is not None
    return is_example or int.from_bytes(secret) < _SMALL or address in _KNOWN
