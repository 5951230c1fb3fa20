"""The official x402 client and facilitator pay on this chain as they do on Base."""

from __future__ import annotations

from web3 import Web3
from x402.mechanisms.evm import FacilitatorWeb3Signer
from x402.mechanisms.evm.exact.client import ExactEvmScheme as Client
from x402.mechanisms.evm.exact.facilitator import ExactEvmScheme as Facilitator
from x402.schemas import PaymentPayload, PaymentRequirements

from gateway_demo.chain import FAUCET_KEY


def test_the_official_facilitator_settles_what_the_official_client_signed(chain, payer, wallet):
    required = PaymentRequirements(
        scheme="exact",
        network="eip155:8453",
        asset=chain.usdc,
        amount="10000",
        pay_to=wallet,
        max_timeout_seconds=120,
        extra={"name": "USD Coin", "version": "2"},
    )
    inner = Client(payer).create_payment_payload(required)
    payment = PaymentPayload(payload=inner, accepted=required)
    facilitator = Facilitator(FacilitatorWeb3Signer(Web3.to_hex(FAUCET_KEY), chain.rpc_url))
    checked = facilitator.verify(payment, required)
    assert checked.is_valid, checked.invalid_reason
    settled = facilitator.settle(payment, required)
    assert settled.success, settled.error_reason
    assert chain.usdc_balance(wallet) == 10_000
    assert chain.receipt(settled.transaction)["status"] == "0x1"
