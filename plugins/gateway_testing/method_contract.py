"""Tests that every payment method must pass: subclass `PaymentMethodContract`.

class TestMine(PaymentMethodContract): plugin = gateway_mine

    def header(self, quote, now):
        return a_new_header_that_pays(quote, now)
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from gateway.contracts import MethodPayment, MethodProof, PaymentMethod, Quote, Refused, Taken
from gateway.contracts.payment_methods import claim_key
from gateway.errors import PaymentRequired
from gateway.payments.method_purchases import check_proof
from gateway.plugins.registration import method_offer
from gateway_testing.fakes.chain import (
    NOW,
    FakeChain,
    context_of,
    quote_of_picture,
    registered,
)
from gateway_testing.malformed_headers import GARBAGE, damaged
from gateway_testing.payment_contract import check_headers, check_reason

_HOOK = "register_payment_method"


class PaymentMethodContract:
    """Proofs, checks, and above all that a claim's money is taken once, for one task."""

    plugin: Any
    """The module with the hook `register_payment_method`."""

    values: ClassVar[Mapping[str, Any]] = {}
    """The settings that the plugin needs to register, by their names in gateway.toml."""

    def header(self, quote: Quote, now: int) -> str:
        """Return a new header that pays a quote, without the scheme if there is one."""
        raise NotImplementedError("override `header`: return a payment header for the quote")

    @pytest.fixture
    def method(self, tmp_path: Path) -> PaymentMethod:
        return self.started(tmp_path)

    @pytest.fixture
    def quote(self) -> Quote:
        return quote_of_picture()

    @pytest.fixture
    def proof(self, method: PaymentMethod, quote: Quote) -> MethodProof:
        return method.read(self.header(quote, NOW))

    def started(self, folder: Path) -> PaymentMethod:
        """Return the plugin's method, created as at a start of the gateway."""
        context = context_of(FakeChain(is_silent=True), folder, self.values)
        found: PaymentMethod = registered(self.plugin, _HOOK, context)
        return found

    def test_it_can_be_registered(self, method: PaymentMethod) -> None:
        assert method_offer(method) == (method.name, method)

    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.parametrize("reason", [None, "invalid_payload"])
    def test_a_challenge_fits_into_a_402(
        self, method: PaymentMethod, quote: Quote, version: int, reason: str | None
    ) -> None:
        challenge = method.challenge(quote, reason, version)
        check_headers(challenge.headers)
        assert challenge.headers, "The 402 does not offer this payment method."
        if reason is not None:
            assert reason in str(challenge.body), "The body does not contain the reason."

    def test_a_header_is_read_the_same_twice(self, method: PaymentMethod, quote: Quote) -> None:
        header = self.header(quote, NOW)
        proof = method.read(header)
        check_proof(method.name, proof)
        assert method.read(header) == proof, "`read` is pure: the same header, the same proof."
        assert proof.value_units >= quote.price_units, "`header` returns a proof below the price."

    def test_two_headers_have_two_keys(self, method: PaymentMethod, quote: Quote) -> None:
        keys = {method.read(self.header(quote, NOW)).key for _ in range(3)}
        assert len(keys) == 3, "Three new proofs must have three keys: one would use up another."

    @pytest.mark.asyncio
    async def test_a_good_proof_passes_as_often_as_it_is_checked(
        self, method: PaymentMethod, quote: Quote, proof: MethodProof
    ) -> None:
        await method.check(proof, quote, NOW)
        await method.check(proof, quote, NOW)

    @pytest.mark.asyncio
    async def test_garbage_is_refused_and_never_breaks(
        self, method: PaymentMethod, quote: Quote
    ) -> None:
        good = self.header(quote, NOW)
        for header in (*GARBAGE, *damaged(good)):
            try:
                proof = method.read(header)
                check_proof(method.name, proof)
                await method.check(proof, quote, NOW)
            except PaymentRequired as error:
                check_reason(error)
            except Exception as error:  # noqa: BLE001 - any other error would be a 500
                pytest.fail(
                    f"{type(error).__name__}: {error} for the header {header[:200]!r}. Whatever a "
                    "stranger sends, `read` and `check` raise PaymentRequired."
                )
            else:
                same = method.read(good)
                assert proof == same, f"The damaged header {header[:200]!r} is taken as payment."

    @pytest.mark.asyncio
    async def test_the_money_of_a_claim_is_taken_once_however_often_it_is_asked_for(
        self, method: PaymentMethod, proof: MethodProof
    ) -> None:
        asked = payment_of(method, proof)
        answers = await asyncio.gather(*(method.settle(asked) for _ in range(8)))
        assert all(isinstance(answer, Taken) for answer in answers), f"A good proof: {answers}."
        assert len(set(answers)) == 1, f"One payment has several receipts: {answers}."
        assert await method.settle(asked) == answers[0], "Asked again, it answers differently."

    @pytest.mark.asyncio
    async def test_a_claim_that_was_taken_for_a_task_is_refused_to_another(
        self, method: PaymentMethod, proof: MethodProof
    ) -> None:
        first = payment_of(method, proof)
        assert isinstance(await method.settle(first), Taken)
        other = await method.settle(attrs.evolve(first, task_id="another"))
        assert isinstance(other, Refused), "One proof has paid for two tasks."
        check_reason(PaymentRequired(other.reason))
        assert isinstance(await method.settle(first), Taken), "The first task lost its money."

    @pytest.mark.asyncio
    async def test_of_two_tasks_at_once_one_gets_the_money(
        self, method: PaymentMethod, proof: MethodProof
    ) -> None:
        asked = [attrs.evolve(payment_of(method, proof), task_id=f"task-{n}") for n in range(8)]
        answers = await asyncio.gather(*map(method.settle, asked))
        taken = [answer for answer in answers if isinstance(answer, Taken)]
        assert len(taken) == 1, f"{len(taken)} of eight tasks were paid by one proof."

    @pytest.mark.asyncio
    async def test_a_start_anew_knows_what_was_taken(
        self, method: PaymentMethod, proof: MethodProof, tmp_path: Path
    ) -> None:
        asked = payment_of(method, proof)
        first = await method.settle(asked)
        again = self.started(tmp_path)
        # The other task first: if asked for the same one, a method that has forgotten would relearn
        # it.
        other = await again.settle(attrs.evolve(asked, task_id="another"))
        assert isinstance(other, Refused), "After a restart one proof pays for two tasks."
        assert await again.settle(asked) == first, "A restart forgot that the money was taken."

    @pytest.mark.parametrize("reference", ["some receipt", None])
    def test_a_receipt_fits_into_headers(
        self, method: PaymentMethod, proof: MethodProof, reference: str | None
    ) -> None:
        check_headers(method.receipt_headers(proof, reference))


def payment_of(method: PaymentMethod, proof: MethodProof) -> MethodPayment:
    """Return the core's payment for a proof."""
    return MethodPayment(
        claim=claim_key(method.name, proof.key),
        data=proof.data,
        value_units=proof.value_units,
        price_units=20_000,
        task_id="a-task",
        reserved_at=float(NOW),
    )
