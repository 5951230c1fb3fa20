"""Public names of the Generation Gateway, for plugin authors.

Code inside the gateway imports the modules directly. Names are imported lazily, because every
command imports this package, and few need more than one of its modules.
"""

import importlib
from typing import TYPE_CHECKING

from gateway.version import VERSION as __version__  # noqa: N811 - Python's name for it

if TYPE_CHECKING:
    # `__all__` chooses of these. Each module has its own names only.
    from gateway.contracts.chain import *
    from gateway.contracts.parts import *
    from gateway.contracts.payment_methods import *
    from gateway.contracts.payments import *
    from gateway.contracts.providers import *
    from gateway.domain.capabilities import *
    from gateway.domain.kinds import *
    from gateway.domain.offers import *
    from gateway.domain.records import *
    from gateway.domain.units import *
    from gateway.errors import *
    from gateway.plugins.hookspecs import hookimpl
    from gateway.running.gateway import Gateway
    from gateway.sandbox import Sandbox, SandboxEnded, SandboxLimits, SandboxLost, SandboxRefusal
    from gateway.settings import Settings, load_settings, secret, setting
    from gateway.store.data_folder import open_store
    from gateway.vendors import Answer, Outbound
    from gateway.web.front.current import current_gateway

__all__ = [
    "DATA",
    "DOCUMENT_FILE",
    "KILOCHARACTERS",
    "MEGAPIXEL",
    "PAGE",
    "PICTURES",
    "PICTURE_FILE",
    "SECOND",
    "TEXT",
    "AccountProblem",
    "Alarm",
    "Answer",
    "Attachment",
    "Authorization",
    "AuthorizationVerifier",
    "Block",
    "CallReverted",
    "Callbacks",
    "Cancelling",
    "Capability",
    "Chain",
    "ChainUnavailable",
    "Challenge",
    "Check",
    "Choice",
    "Closing",
    "Condition",
    "ContentPolicy",
    "Discovery",
    "Endpoint",
    "Event",
    "EventReader",
    "EventType",
    "ExecutionError",
    "FileKind",
    "Gateway",
    "GenerationRequest",
    "Handle",
    "HandleLost",
    "InSandbox",
    "InvalidInput",
    "InvalidPayment",
    "Job",
    "JobFailed",
    "Limit",
    "Link",
    "LinkDead",
    "MethodPayment",
    "MethodProof",
    "Mount",
    "NoFreeNonce",
    "NotAccepted",
    "Outbound",
    "Output",
    "Part",
    "Payment",
    "PaymentMethod",
    "PaymentRequired",
    "Pending",
    "PluginContext",
    "Polling",
    "PriceStep",
    "Probing",
    "Prompt",
    "Proof",
    "Provider",
    "Quote",
    "RateLimited",
    "Receipt",
    "Refused",
    "Result",
    "ResultKind",
    "ResultMissing",
    "ResultUnusable",
    "Sandbox",
    "SandboxEnded",
    "SandboxLimits",
    "SandboxLost",
    "SandboxRefusal",
    "Settings",
    "SettingsError",
    "SettlementJournal",
    "Settler",
    "SignedTransaction",
    "SubmitUncertain",
    "Taken",
    "Task",
    "Traits",
    "Transfer",
    "TransferVerifier",
    "Transient",
    "TxFailed",
    "TxNotFound",
    "Unit",
    "UnitPrice",
    "UnsignedBatch",
    "UnsignedTransaction",
    "Validating",
    "__version__",
    "current_gateway",
    "hookimpl",
    "load_settings",
    "open_store",
    "secret",
    "setting",
    "usdc",
]

# Modules with public names; those that import little come first.
_HOMES = (
    "gateway.errors",
    "gateway.domain",
    "gateway.contracts",
    "gateway.contracts.parts",
    "gateway.settings",
    "gateway.plugins.hookspecs",
    "gateway.sandbox",
    "gateway.running.gateway",
    "gateway.store.data_folder",
    "gateway.web.front.current",
    "gateway.vendors",
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name lazily; type checkers use the imports above."""
        if name in __all__:
            for home in _HOMES:
                module = importlib.import_module(home)
                if hasattr(module, name):
                    globals()[name] = getattr(module, name)
                    return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return every public name, including those not imported yet."""
    return sorted({*globals(), *__all__})
