"""Tests that every verifier of signed payments must pass: subclass `PaymentVerifierContract`.

class TestMine(PaymentVerifierContract): plugin = gateway_mine

    def header(self, quote, now):
        return a_payment_header_that_pays(quote, now)
"""

import contextlib
import json
import re
import string
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from gateway.contracts import AuthorizationVerifier, Proof, Quote
from gateway.contracts.payments import split_header_name
from gateway.domain import Flow, Payment, PaymentState
from gateway.domain.eip3009 import BASE_SEPOLIA
from gateway.errors import ChainUnavailable, PaymentRequired, ValidationError
from gateway_testing.fakes.chain import (
    NOW,
    TX_HASH,
    FakeChain,
    context_of,
    quote_of_picture,
    registered,
)
from gateway_testing.malformed_headers import GARBAGE, damaged

_HOOK = "register_authorization_verifier"
# Most proxies accept no more.
_MAX_HEADERS_BYTES = 8192
_YEAR_S = 31_536_000
_TOKEN = set(string.ascii_letters + string.digits + "-")
_OTHER = "0x" + "c3" * 20


class PaymentVerifierContract:
    """Challenges, payment headers, terms and receipts. None of these tests needs a chain."""

    plugin: Any
    """The module with the hook `register_authorization_verifier`."""

    values: ClassVar[Mapping[str, Any]] = {}
    """The settings that the plugin needs to register, by their names in gateway.toml."""

    def header(self, quote: Quote, now: int) -> str:
        """Return a header that pays a quote. Sign it if the plugin recovers signatures itself."""
        raise NotImplementedError("override `header`: return a payment header for the quote")

    @pytest.fixture
    def chain(self) -> FakeChain:
        """Return a chain that does not respond."""
        return FakeChain(is_silent=True)

    @pytest.fixture
    def verifier(self, chain: FakeChain, tmp_path: Path) -> AuthorizationVerifier:
        found: AuthorizationVerifier = registered(
            self.plugin, _HOOK, context_of(chain, tmp_path, self.values)
        )
        return found

    @pytest.fixture
    def quote(self) -> Quote:
        return quote_of_picture()

    @pytest.fixture
    def proof(self, verifier: AuthorizationVerifier, quote: Quote) -> Proof:
        return verifier.read(self.header(quote, NOW))

    def test_its_headers_have_names(self, verifier: AuthorizationVerifier) -> None:
        names = list(verifier.header_names)
        assert names, "header_names is empty: no buyer could pay."
        headers = [split_header_name(name) for name in names]
        assert all(
            header and set(header) <= _TOKEN and set(scheme) <= _TOKEN for header, scheme in headers
        ), f"{names} are not valid header names."
        assert len({name.lower() for name in names}) == len(names), f"{names} has one name twice."

    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.parametrize("reason", [None, "invalid_payload"])
    def test_a_challenge_tells_price_and_wallet(
        self, verifier: AuthorizationVerifier, quote: Quote, version: int, reason: str | None
    ) -> None:
        challenge = verifier.challenge(quote, reason, version)
        body = json.dumps(challenge.body)
        sent = body + "".join(map(decoded, challenge.headers.values()))
        assert "20000" in sent, "Neither body nor headers contain the price in units."
        assert quote.wallet.lower() in sent.lower(), "Neither body nor headers contain the wallet."
        assert reason is None or reason in body, "The body does not contain the reason."
        check_headers(challenge.headers)
        again = verifier.challenge(quote, reason, version)
        assert (again.body.keys(), again.headers.keys()) == (
            challenge.body.keys(),
            challenge.headers.keys(),
        ), "A second challenge has other members or headers."

    def test_a_header_is_read_the_same_twice_and_asks_no_chain(
        self, verifier: AuthorizationVerifier, quote: Quote, chain: FakeChain
    ) -> None:
        header = self.header(quote, NOW)
        proof = verifier.read(header)
        assert verifier.read(header) == proof, "`read` is pure: the same header, the same proof."
        verifier.check_terms(proof, quote, NOW)
        assert chain.asked == 0, "`read` and `check_terms` must not use the chain."

    def test_garbage_is_refused_and_never_breaks(
        self, verifier: AuthorizationVerifier, quote: Quote
    ) -> None:
        good = self.header(quote, NOW)
        for header in (*GARBAGE, *damaged(good)):
            try:
                proof = verifier.read(header)
                verifier.check_terms(proof, quote, NOW)
            except PaymentRequired as error:
                check_reason(error)
            except ValidationError:
                # The header's Idempotency-Key is wrong.
                continue
            except Exception as error:  # noqa: BLE001 - any other error would be a 500
                pytest.fail(
                    f"{type(error).__name__}: {error} for the header {header[:200]!r}. Whatever "
                    "a stranger sends, `read` and `check_terms` raise PaymentRequired, or "
                    "ValidationError for a wrong Idempotency-Key."
                )

    @pytest.mark.parametrize(
        "change",
        [
            {"scheme": "upto"},
            {"network": "solana"},
            {"asset": _OTHER},
            {"amount": "19999"},
            {"pay_to": _OTHER},
        ],
        ids="-".join,
    )
    def test_terms_that_differ_are_refused(
        self, verifier: AuthorizationVerifier, quote: Quote, proof: Proof, change: Any
    ) -> None:
        (name,) = change
        if getattr(proof, name, None) is None:
            pytest.skip(f"this proof has no {name}")
        refused(verifier, attrs.evolve(proof, **change), quote, f"another {name}")

    @pytest.mark.parametrize(
        "change",
        [
            {"recipient": _OTHER},
            {"value_units": 19_999},
            {"valid_after": NOW + 60},
            {"valid_before": NOW - 1},
            {"valid_before": NOW + _YEAR_S},
        ],
        ids="-".join,
    )
    def test_a_signature_of_other_terms_is_refused(
        self, verifier: AuthorizationVerifier, quote: Quote, proof: Proof, change: Any
    ) -> None:
        signed = attrs.evolve(proof.authorization, **change)
        refused(verifier, attrs.evolve(proof, authorization=signed), quote, f"{change}")

    @pytest.mark.parametrize(
        "change",
        [{"price_units": 20_001}, {"wallet": _OTHER}],
        ids=["a higher price", "another wallet"],
    )
    def test_a_payment_for_another_quote_is_refused(
        self, verifier: AuthorizationVerifier, quote: Quote, proof: Proof, change: Any
    ) -> None:
        refused(verifier, proof, attrs.evolve(quote, **change), f"a quote with {change}")

    def test_a_payment_on_another_network_is_refused(
        self, quote: Quote, proof: Proof, chain: FakeChain, tmp_path: Path
    ) -> None:
        context = context_of(chain, tmp_path, {**self.values, "network": BASE_SEPOLIA.name})
        verifier = registered(self.plugin, _HOOK, context)
        elsewhere = attrs.evolve(quote, network=BASE_SEPOLIA)
        refused(verifier, proof, elsewhere, "another network")

    @pytest.mark.asyncio
    async def test_nothing_is_accepted_that_no_chain_confirms(
        self, verifier: AuthorizationVerifier, proof: Proof
    ) -> None:
        try:
            await verifier.check_chain(proof.authorization)
        except PaymentRequired as error:
            check_reason(error)
        except ChainUnavailable:
            pass
        else:
            pytest.fail("`check_chain` accepted a payment that no chain has confirmed.")

    @pytest.mark.asyncio
    async def test_the_transfer_is_simulated(self, proof: Proof, tmp_path: Path) -> None:
        """A settler may send it without another simulation."""
        chain = FakeChain(accepts_calls=True)
        verifier = registered(self.plugin, _HOOK, context_of(chain, tmp_path, self.values))
        with contextlib.suppress(PaymentRequired, ChainUnavailable):
            await verifier.check_chain(proof.authorization)
        nonce = bytes.fromhex(proof.authorization.nonce[2:])
        assert any(nonce in data for data in chain.called), (
            "`check_chain` did not simulate the transfer with the authorization's nonce."
        )

    @pytest.mark.parametrize("paid_tx", [TX_HASH, None])
    def test_a_receipt_fits_into_headers(
        self, verifier: AuthorizationVerifier, proof: Proof, paid_tx: str | None
    ) -> None:
        headers = verifier.receipt_headers(proof, payment_of(proof, paid_tx))
        assert headers or paid_tx is None, "The buyer gets no receipt."
        check_headers(headers)


def refused(verifier: AuthorizationVerifier, proof: Proof, quote: Quote, what: str) -> None:
    """Fail unless a verifier refuses a proof for a quote."""
    try:
        verifier.check_terms(proof, quote, NOW)
    except PaymentRequired as error:
        check_reason(error)
    else:
        pytest.fail(f"`check_terms` let {what} pass.")


def check_reason(error: PaymentRequired) -> None:
    """Fail unless a refusal has a reason in x402's form: words joined by `_`."""
    assert re.fullmatch(r"[a-z][a-z0-9_]*", error.reason or ""), (
        f"PaymentRequired({error.reason!r}): give it a standard reason, such as invalid_payload."
    )


def check_headers(headers: Any) -> None:
    """Fail unless headers are small and can be sent."""
    for name, value in headers.items():
        assert set(name) <= _TOKEN, f"{name!r} is not a valid header name."
        assert value.isascii(), f"{name} is not ASCII."
        assert value.isprintable(), f"{name} contains a character that no header may have."
    size = sum(len(name) + len(value) + 4 for name, value in headers.items())
    assert size <= _MAX_HEADERS_BYTES, f"The headers have {size} bytes; proxies cut them off."


def decoded(value: str) -> str:
    """Return a header's value, followed by the decoded Base64 in it."""
    parts = re.findall(r"[A-Za-z0-9+/_-]{40,}", value)
    raw = (urlsafe_b64decode(part.replace("+", "-").replace("/", "_") + "===") for part in parts)
    return value + "".join(text.decode("utf-8", "replace") for text in raw)


def payment_of(proof: Proof, paid_tx: str | None) -> Payment:
    """Return the payment for a proof."""
    return Payment(
        id=1,
        flow=Flow.X402,
        state=PaymentState.SETTLED if paid_tx else PaymentState.SETTLING,
        request_hash="0" * 64,
        price_units=20_000,
        payer=proof.authorization.sender,
        authorization=proof.authorization,
        search_from_block=1,
        paid_tx=paid_tx,
        paid_log_index=0 if paid_tx else None,
        paid_units=20_000 if paid_tx else None,
    )
