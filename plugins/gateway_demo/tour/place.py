"""The ports, folders and keys of one run of the demo."""

import secrets
from pathlib import Path

import attrs

from gateway.domain.eip3009 import BASE_SEPOLIA, checksum_address
from gateway_demo.tour.processes import HOST

# The name and chain id of the embedded chain. Every x402 client knows them, and a signature made
# for them is worth nothing on Base.
NETWORK = BASE_SEPOLIA
# The first account of every developer chain (anvil, Hardhat). With this well-known key the purchase
# in the README can be copied and run, and no reader takes the key for a secret.
PLAY_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"


@attrs.frozen(kw_only=True)
class Place:
    """One run of the demo; `folder` is temporary."""

    port: int
    rpc_port: int
    output: Path
    folder: Path
    wallet: str = attrs.field(factory=lambda: checksum_address("0x" + secrets.token_hex(20)))
    settlement_key: str = attrs.field(factory=lambda: "0x" + secrets.token_hex(32), repr=False)
    refund_key: str = attrs.field(factory=lambda: "0x" + secrets.token_hex(32), repr=False)
    buyer_key: str = attrs.field(default=PLAY_KEY, repr=False)
    # The key for purchases on the shop page. It is separate from the buyer's, whose balance the
    # demo shows.
    purse_key: str = attrs.field(factory=lambda: "0x" + secrets.token_hex(32), repr=False)
    password: str = attrs.field(factory=lambda: secrets.token_urlsafe(9), repr=False)

    @property
    def base_url(self) -> str:
        """The gateway's URL."""
        return f"http://{HOST}:{self.port}"

    @property
    def rpc_url(self) -> str:
        """The chain's URL."""
        return f"http://{HOST}:{self.rpc_port}"

    @property
    def settings(self) -> dict[str, str]:
        """The gateway's settings; all others keep their defaults."""
        return {
            "network": NETWORK.name,
            "bind": f"{HOST}:{self.port}",
            "base_url": self.base_url,
            "rpc_urls": self.rpc_url,
            "wallet": self.wallet,
            "settlement_key": self.settlement_key,
            "refund_key": self.refund_key,
            "admin_password": self.password,
            "data_dir": str(self.folder / "data"),
            "sandbox": "true",
            # The tour's purchases come within a minute, and the visitor's follow.
            "limit_x402": "60/60s",
            "webhooks": "local",
            "play_key": self.purse_key,
        }

    @property
    def chain_options(self) -> list[str]:
        """The options of the chain."""
        return ["--port", str(self.rpc_port), "--chain-id", str(NETWORK.chain_id)]

    def invitation(self) -> list[tuple[str, str]]:
        """Return suggestions for further steps, as labels and lines to copy."""
        return [
            ("shop page", f"{self.base_url}/"),
            ("offers", f"curl {self.base_url}/.well-known/agent-manifest.json"),
            ("for LLMs", f"curl {self.base_url}/llms.txt"),
            ("a 402", f"curl -i -X POST {self.base_url}/api/x402/sandbox-image"),
            ("a refund", f"{self.base_url}/play/fails-on-purpose"),
            ("admin", f"{self.base_url}/admin  password {self.password}"),
            ("JSON-RPC", f"{self.rpc_url}  chain id {NETWORK.chain_id}"),
            ("buyer's key", self.buyer_key),
            ("", "play money: it works on this chain only"),
        ]
