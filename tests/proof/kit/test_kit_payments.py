"""The bundled payment plugins pass the kit."""

import base64
import json
import re

import pytest
from eth_utils.crypto import keccak

import gateway_facilitator_settler
import gateway_local_settler
import gateway_mpp
import gateway_usdc_direct
import gateway_x402
from gateway.testing import PaymentVerifierContract, SettlerContract, TransferVerifierContract
from gateway_testing.fakes.chain import PAYER, context_of, registered


def payload(quote, now):
    return {
        "signature": "0x" + "1b" * 65,
        "authorization": {
            "from": PAYER,
            "to": quote.wallet,
            "value": str(quote.price_units),
            "validAfter": str(now - 60),
            "validBefore": str(now + 120),
            "nonce": "0x" + "5e" * 32,
        },
    }


def encoded(value):
    return base64.b64encode(json.dumps(value).encode()).decode()


class TestX402Version1(PaymentVerifierContract):
    plugin = gateway_x402

    def header(self, quote, now):
        terms = {"x402Version": 1, "scheme": "exact", "network": quote.network.name}
        return encoded(terms | {"payload": payload(quote, now)})


class TestX402Version2(PaymentVerifierContract):
    plugin = gateway_x402

    def header(self, quote, now):
        accepted = {
            "scheme": "exact",
            "network": quote.network.caip2,
            "asset": quote.network.token,
            "amount": str(quote.price_units),
            "payTo": quote.wallet,
            "maxTimeoutSeconds": 300,
            "extra": {"name": "USD Coin", "version": "2"},
        }
        whole = {"x402Version": 2, "payload": payload(quote, now), "accepted": accepted}
        return encoded(whole | {"resource": {}})


class TestMpp(PaymentVerifierContract):
    plugin = gateway_mpp
    values = {"mpp_enabled": True}  # noqa: RUF012 - read only

    @pytest.fixture(autouse=True)
    def _same_gateway(self, chain, tmp_path):
        context = context_of(chain, tmp_path, self.values)
        self.verifier_of_challenges = registered(
            gateway_mpp, "register_authorization_verifier", context
        )

    def header(self, quote, now):
        challenge = self.verifier_of_challenges.challenge(quote, None, 2)
        shown = dict(re.findall(r'(\w+)="([^"]*)"', challenge.headers["WWW-Authenticate"]))
        nonce = keccak(text=json.dumps([shown["id"], shown["realm"]], separators=(",", ":")))
        paid = payload(quote, now)
        signed = paid["authorization"] | {"nonce": "0x" + nonce.hex()}
        whole = {"type": "authorization", "signature": paid["signature"], **signed}
        return encoded({"challenge": shown, "payload": whole})


class TestUsdcDirect(TransferVerifierContract):
    plugin = gateway_usdc_direct


class TestLocalSettler(SettlerContract):
    plugin = gateway_local_settler
    name = "local"
    values = {"settlement_key": "7f3c" + "5e" * 30}  # noqa: RUF012 - read only


class TestFacilitatorSettler(SettlerContract):
    plugin = gateway_facilitator_settler
    name = "facilitator"
    values = {"facilitator_url": "http://127.0.0.1:9"}  # noqa: RUF012 - nobody listens there
