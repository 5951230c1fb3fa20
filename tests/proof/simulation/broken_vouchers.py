"""Mutants of payments by a method whose proofs the core cannot read."""

import contextlib
import uuid
from typing import Any

from gateway import MethodPayment, Refused
from gateway.domain import PaymentState
from gateway.errors import PaymentRequired
from gateway.payments.method_purchases import MethodPurchases, MethodSettlements, _Paid
from gateway.store import method_payments
from gateway.store.method_payments import SqlMethodPayments
from tests.proof.simulation.mutant import Mutant


def taken_before_claim() -> Mutant:
    original = MethodPurchases._reserve_and_ask

    async def _reserve_and_ask(self: Any, purchase: Any) -> Any:
        early = MethodPayment(
            claim=purchase.claim,
            data=purchase.proof.data,
            value_units=purchase.proof.value_units,
            price_units=purchase.new.price_units,
            task_id=purchase.new.id,
            reserved_at=purchase.new.created_at,
        )
        with contextlib.suppress(Exception):
            await purchase.method.settle(early)
        return await original(self, purchase)

    return Mutant(
        "a voucher taken before its claim (T1)",
        ((MethodPurchases, "_reserve_and_ask", _reserve_and_ask),),
    )


def taken_before_settling() -> Mutant:
    original = MethodSettlements._settle_until_closed

    async def _settle_until_closed(self: Any, payment: Any) -> None:
        opened = await self._store.methods.open_payment(payment.id)
        if opened is not None:
            await self._ask_until_answered(self._methods[opened.method], opened.asked)
        await original(self, payment)

    return Mutant(
        "a voucher taken before it is settling (T2)",
        ((MethodSettlements, "_settle_until_closed", _settle_until_closed),),
    )


def claim_not_written() -> Mutant:
    original = method_payments.claim_key

    def claim_key(method: str, key: str) -> str:
        return f"{original(method, key)}.{uuid.uuid4().hex}"

    return Mutant("a voucher's claim is not written", ((method_payments, "claim_key", claim_key),))


def error_is_refusal() -> Mutant:
    async def _ask_until_answered(self: Any, method: Any, asked: Any) -> Any:
        try:
            return await method.settle(asked)
        except Exception:  # noqa: BLE001 - the mistake
            return Refused("failed")

    return Mutant(
        "a method's error counts as a refusal",
        ((MethodSettlements, "_ask_until_answered", _ask_until_answered),),
    )


def refuse_on_silence() -> Mutant:
    original = MethodPurchases._wait_for_answer

    async def _wait_for_answer(self: Any, task: Any) -> Any:
        task = await original(self, task)
        if task.payment.state in (PaymentState.RESERVED, PaymentState.SETTLING):
            raise PaymentRequired("unknown")
        return task

    return Mutant(
        "402 where a method is silent",
        ((MethodPurchases, "_wait_for_answer", _wait_for_answer),),
    )


def any_bytes() -> Mutant:
    async def is_same_proof(self: Any, method: str, proof: Any) -> bool:
        return True

    return Mutant(
        "a voucher's serial alone shows its task",
        ((SqlMethodPayments, "is_same_proof", is_same_proof),),
    )


def any_wanted() -> Mutant:
    async def _find_proof(self: Any, purchase: Any) -> Any:
        return await self.store.find_claim(purchase.claim)

    return Mutant(
        "a known voucher answers any request", ((MethodPurchases, "_find_proof", _find_proof),)
    )


def check_first() -> Mutant:
    original = MethodPurchases.find_by_method

    async def find_by_method(
        self: Any, method: Any, sent: Any, header: str, *more: Any, **named: Any
    ) -> Any:
        paid = _Paid.read(method, header, None, sent)
        await self._check_proof(paid, sent.quote)
        return await original(self, method, sent, header, *more, **named)

    async def find(self: Any, purchase: Any) -> Any:
        await self._check_proof(purchase, purchase.quote)
        return await reserve(self, purchase)

    reserve = MethodPurchases._find_or_reserve_claim
    return Mutant(
        "a voucher's check before the claim lookup",
        (
            (MethodPurchases, "find_by_method", find_by_method),
            (MethodPurchases, "_find_or_reserve_claim", find),
        ),
    )
