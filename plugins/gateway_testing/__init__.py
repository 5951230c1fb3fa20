"""The test kit for authors of plugins; its public names are in `gateway.testing`."""

import importlib
from typing import Any

_PLACES = {
    "Ask": "fakes.api",
    "FakeApi": "fakes.api",
    "Made": "fakes.api",
    "PaymentMethodContract": "method_contract",
    "PaymentVerifierContract": "payment_contract",
    "ProviderContract": "provider.contract",
    "Reply": "fakes.api",
    "SettlerContract": "settler_contract",
    "TransferVerifierContract": "transfer_contract",
}
__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    """Import a contract when its name is asked for: each one imports pytest and more."""
    if name == "StoreContract":
        raise AttributeError(
            "StoreContract is not public: a plugin cannot bring a store. It is in "
            "tests/store_contract of the gateway's repository."
        )
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
