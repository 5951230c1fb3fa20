"""Tests that every verifier of direct transfers must pass: subclass `TransferVerifierContract`.

class TestMine(TransferVerifierContract): plugin = gateway_mine
"""

from pathlib import Path
from typing import Any

import pytest

from gateway.contracts import TransferVerifier
from gateway.domain import Transfer
from gateway.domain.eip3009 import BASE_SEPOLIA
from gateway.errors import (
    ChainUnavailable,
    InvalidPayment,
    PaymentError,
    TxFailed,
    TxNotFound,
)
from gateway_testing.fakes.chain import (
    HEAD,
    NOW,
    PAYER,
    TX_HASH,
    FakeChain,
    context_of,
    mined,
    registered,
    transfer_log,
)

_HOOK = "register_transfer_verifier"
# The cutoff block: transfers up to it may have paid before this database existed.
_CUTOFF_BLOCK = 10


class TransferVerifierContract:
    """Which mined transactions a verifier accepts as payment."""

    pytestmark = pytest.mark.asyncio

    plugin: Any
    """The module with the hook `register_transfer_verifier`."""

    @pytest.fixture
    def chain(self) -> FakeChain:
        return FakeChain()

    @pytest.fixture
    def verifier(self, chain: FakeChain, tmp_path: Path) -> TransferVerifier:
        found: TransferVerifier = registered(self.plugin, _HOOK, context_of(chain, tmp_path, {}))
        return found

    async def test_a_transfer_to_the_wallet_pays(
        self, chain: FakeChain, verifier: TransferVerifier
    ) -> None:
        chain.receipts[TX_HASH] = mined(transfer_log(4, units=20_000))
        paid = Transfer(tx_hash=TX_HASH, log_index=4, sender=PAYER, amount_units=20_000)
        assert await _find(verifier) == [paid]

    async def test_every_transfer_of_a_transaction_counts_for_itself(
        self, chain: FakeChain, verifier: TransferVerifier
    ) -> None:
        chain.receipts[TX_HASH] = mined(transfer_log(4, units=1), transfer_log(6, units=2))
        assert [(one.log_index, one.amount_units) for one in await _find(verifier)] == [
            (4, 1),
            (6, 2),
        ]

    async def test_what_no_endpoint_knows_is_not_find(self, verifier: TransferVerifier) -> None:
        await _refused(verifier, TxNotFound)

    async def test_a_reverted_transaction_pays_nothing(
        self, chain: FakeChain, verifier: TransferVerifier
    ) -> None:
        chain.receipts[TX_HASH] = mined(transfer_log(), succeeded=False)
        await _refused(verifier, TxFailed)

    @pytest.mark.parametrize(
        "logs",
        [
            (),
            (transfer_log(to=PAYER),),
            (transfer_log(token=BASE_SEPOLIA.token),),
            (transfer_log(units=0),),
        ],
        ids=["no transfer", "to somebody else", "of another token", "of nothing"],
    )
    async def test_what_is_no_transfer_to_the_wallet_is_refused(
        self, chain: FakeChain, verifier: TransferVerifier, logs: Any
    ) -> None:
        chain.receipts[TX_HASH] = mined(*logs)
        await _refused(verifier, InvalidPayment)

    async def test_what_may_have_paid_before_is_refused(
        self, chain: FakeChain, verifier: TransferVerifier
    ) -> None:
        """A new database does not know which transfers an older one accepted."""
        chain.receipts[TX_HASH] = mined(transfer_log(), at=_CUTOFF_BLOCK)
        await _refused(verifier, InvalidPayment)
        chain.receipts[TX_HASH] = mined(transfer_log(), at=HEAD - 1)
        await _refused(verifier, InvalidPayment, born_at=float(NOW))

    async def test_a_transfer_that_is_too_old_is_refused(
        self, chain: FakeChain, verifier: TransferVerifier
    ) -> None:
        chain.receipts[TX_HASH] = mined(transfer_log())
        await _refused(verifier, InvalidPayment, now=NOW + 25 * 3600.0)

    async def test_a_transfer_that_is_not_deep_enough_is_not_find(
        self, chain: FakeChain, tmp_path: Path
    ) -> None:
        patient = registered(self.plugin, _HOOK, context_of(chain, tmp_path, {"confirmations": 3}))
        chain.receipts[TX_HASH] = mined(transfer_log(), at=HEAD - 1)
        await _refused(patient, TxNotFound)
        chain.receipts[TX_HASH] = mined(transfer_log(), at=HEAD - 2)
        assert len(await _find(patient)) == 1

    async def test_a_silent_chain_is_said_to_be_silent(
        self, chain: FakeChain, verifier: TransferVerifier
    ) -> None:
        chain.is_silent = True
        with pytest.raises(ChainUnavailable):
            await _find(verifier)


async def _find(verifier: TransferVerifier, **changes: float) -> list[Transfer]:
    when: dict[str, Any] = {"born_at": 0.0, "now": float(NOW), **changes}
    return await verifier.find_transfers(TX_HASH, floor_block=_CUTOFF_BLOCK, **when)


async def _refused(verifier: TransferVerifier, error: type[PaymentError], **changes: float) -> None:
    with pytest.raises(PaymentError) as raised:
        await _find(verifier, **changes)
    assert type(raised.value) is error, (
        f"{type(raised.value).__name__}, but {error.__name__} would tell the buyer how to go on."
    )
    assert str(raised.value).strip(), "The error needs a message for the buyer: a sentence."
