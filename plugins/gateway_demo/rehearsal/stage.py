"""The chain, keys, folder and settings of one rehearsal."""

import contextlib
import json
import secrets
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

from gateway.domain.eip3009 import checksum_address
from gateway.errors import SettingsError
from gateway.installed import modules_of
from gateway.settings import Settings, check_settings, load_settings
from gateway_demo.tour.errors import DemoError
from gateway_demo.tour.place import NETWORK, PLAY_KEY
from gateway_demo.tour.processes import HOST, Child

# The real shop's keystores, shared services, copies and signals, which a rehearsal never touches.
_WITHOUT = {
    "settlement_keys": "",
    "settlement_keystore": None,
    "settlement_keystore_password": "",
    "refund_keystore": None,
    "refund_keystore_password": "",
    "wallet_is_contract": False,
    "database_url": "",
    "limits_url": "",
    "outputs_url": "",
    "role": "all",
    "client_ip_header": "",
    "backup_url": "",
    "restore": "",
    "heartbeat_url": "",
    "heartbeat_pause_url": "",
    "heartbeat_pause_key": "",
    "exit_when_idle": "",
    "metrics_bind": "",
}


def _make_key() -> str:
    return "0x" + secrets.token_hex(32)


@attrs.frozen(kw_only=True)
class Stage:
    """One rehearsal; `folder` is temporary, so each one begins anew."""

    folder: Path
    rpc_url: str = ""
    # None: the port of the operator's GATEWAY_BIND.
    port: int | None = None
    # For a plugin's toy vendor on this machine.
    allows_loopback_links: bool = False
    # Used if the operator has set none. Nobody has its key.
    wallet: str = attrs.field(factory=lambda: checksum_address("0x" + secrets.token_hex(20)))
    settlement_key: str = attrs.field(factory=_make_key, repr=False)
    refund_key: str = attrs.field(factory=_make_key, repr=False)
    # The key for purchases on the shop page.
    purse_key: str = attrs.field(factory=_make_key, repr=False)

    @classmethod
    def from_json(cls, text: str) -> "Stage":
        """Return the stage whose fields are an object of JSON."""
        fields = json.loads(text)
        return cls(**fields | {"folder": Path(fields["folder"])})

    def to_json(self) -> str:
        """Return the fields as an object of JSON; it contains the keys."""
        return json.dumps(attrs.asdict(self) | {"folder": str(self.folder)})

    @property
    def data_dir(self) -> Path:
        """The folder of the database and the outputs."""
        return self.folder / "data"

    def load_settings(self) -> Settings:
        """Return the operator's settings with this rehearsal's chain, keys and folder.

        Raises `SettingsError` for the operator's mistakes.
        """
        own = load_settings(needs_wallet=False, **self.replaced())
        disabled = modules_of(own.plugins_disabled)
        if "gateway_demo" in disabled:
            raise SettingsError(
                "The embedded chain needs gateway_demo, which GATEWAY_PLUGINS_DISABLED disables."
            )
        place = f"{HOST}:{self.port or own.bind.rpartition(':')[2]}"
        settings = own.changed(
            wallet=own.wallet or self.wallet,
            # The shop may use a facilitator only.
            plugins_disabled=tuple(disabled.keys() - {"gateway_local_settler"}),
            bind=place,
            base_url=f"http://{place}",
            rpc_urls=(self.rpc_url or f"http://{HOST}",),
            play_key=self.purse_key,
            allow_loopback_links=own.allow_loopback_links or self.allows_loopback_links,
        )
        check_settings(settings)
        return settings

    def replaced(self) -> dict[str, Any]:
        """Return the settings that the operator's cannot override, by name."""
        return {
            **_WITHOUT,
            "network": NETWORK.name,
            "settlement": "local",
            "settlement_key": self.settlement_key,
            "refund_key": self.refund_key,
            "data_dir": self.data_dir,
            "webhooks": "local",
        }

    @contextlib.contextmanager
    def start_chain(self) -> Iterator["Stage"]:
        """Run the embedded chain, with play money for gas, refunds and buyers.

        Raises `SettingsError` without py-evm, or if the chain does not start.
        """
        if find_spec("eth") is None:
            raise SettingsError(
                "The embedded chain needs py-evm: pip install 'generation-gateway[demo]'"
            )
        from gateway_demo.token import address_of  # noqa: PLC0415 - it needs the extra `demo`

        options = ["--port", "0", "--chain-id", str(NETWORK.chain_id)]
        for key in (self.settlement_key, self.refund_key, self.purse_key, PLAY_KEY):
            options += ["--fund", address_of(bytes.fromhex(key.removeprefix("0x")))]
        chain = Child.start("chain", options, self.folder)
        try:
            chain.wait_until(lambda: _find_url(chain) != "")
            yield attrs.evolve(self, rpc_url=_find_url(chain))
        except DemoError as error:
            raise SettingsError(f"{error} {error.log}".strip()) from None
        finally:
            chain.stop()


def _find_url(chain: Child) -> str:
    """Return the URL in the line that a started chain prints; empty before it."""
    for line in chain.log.read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            return str(json.loads(line)["rpc_url"])
    return ""
