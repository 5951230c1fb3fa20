"""Protocols of providers, payment plugins, the chain and output stores, and their records."""

from gateway.contracts.chain import CallReverted, Chain
from gateway.contracts.outputs import OutputStore, OutputStoreUnavailable, StoredFile
from gateway.contracts.parts import Alarm
from gateway.contracts.payment_methods import (
    MethodPayment,
    MethodProof,
    PaymentMethod,
    Refused,
    Taken,
)
from gateway.contracts.payments import (
    AuthorizationVerifier,
    Challenge,
    GasOfKey,
    NoFreeNonce,
    PluginContext,
    Proof,
    Quote,
    Selling,
    SettlementJournal,
    Settler,
    SignedTransaction,
    TransferVerifier,
    UnsignedBatch,
    UnsignedTransaction,
)
from gateway.contracts.providers import (
    Cancelling,
    Clock,
    Closing,
    Job,
    Polling,
    Probing,
    Provider,
    Validating,
)
from gateway.contracts.store import Cost, Lease, NewTask
