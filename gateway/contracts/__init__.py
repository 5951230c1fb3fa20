"""The seams of the gateway: what a provider, a payment plugin, a chain and a store promise."""

from gateway.contracts.chain import CallReverted, Chain
from gateway.contracts.keeping import Artifacts, Lease, NewTask, Store
from gateway.contracts.paying import (
    AuthorizationVerifier,
    Challenge,
    PluginContext,
    Proof,
    Quote,
    SettlementJournal,
    Settler,
    SignedTransaction,
    TransferVerifier,
)
from gateway.contracts.providing import Clock, Job, Provider, Registered
from gateway.contracts.refunding import RefundLedger

__all__ = [
    "Artifacts",
    "AuthorizationVerifier",
    "CallReverted",
    "Chain",
    "Challenge",
    "Clock",
    "Job",
    "Lease",
    "NewTask",
    "PluginContext",
    "Proof",
    "Provider",
    "Quote",
    "RefundLedger",
    "Registered",
    "SettlementJournal",
    "Settler",
    "SignedTransaction",
    "Store",
    "TransferVerifier",
]
