"""The test kit for authors of plugins and stores: what a plugin must do, as tests to subclass.

    from gateway.testing import FakeApi, ProviderContract, Reply

Needs `pip install 'generation-gateway[testing]'`. The server never imports it; tests of this
repository alone are in `tests/`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.testing.fakes.api import Ask, FakeApi, Made, Reply
    from gateway.testing.method_contract import PaymentMethodContract
    from gateway.testing.payment_contract import PaymentVerifierContract
    from gateway.testing.provider.contract import ProviderContract
    from gateway.testing.settler_contract import SettlerContract
    from gateway.testing.store.contract import StoreContract
    from gateway.testing.transfer_contract import TransferVerifierContract

_PLACES = {
    "Ask": "fakes.api",
    "FakeApi": "fakes.api",
    "Made": "fakes.api",
    "PaymentMethodContract": "method_contract",
    "PaymentVerifierContract": "payment_contract",
    "ProviderContract": "provider.contract",
    "Reply": "fakes.api",
    "SettlerContract": "settler_contract",
    "StoreContract": "store.contract",
    "TransferVerifierContract": "transfer_contract",
}
__all__ = [
    "Ask",
    "FakeApi",
    "Made",
    "PaymentMethodContract",
    "PaymentVerifierContract",
    "ProviderContract",
    "Reply",
    "SettlerContract",
    "StoreContract",
    "TransferVerifierContract",
]


def __getattr__(name: str) -> Any:
    """Import a contract when its name is asked for: each one imports pytest and more."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"gateway.testing.{_PLACES[name]}"), name)
