"""The payment method of the vouchers, like a plugin's: each process calls the bank."""

import asyncio
from collections.abc import Mapping
from typing import Any

from gateway import Challenge, MethodPayment, MethodProof, Quote, Refused, Taken
from gateway.errors import ExecutionError, PaymentRequired
from tests.proof.simulation.bank import NAME, Bank

HEADER = "X-VOUCHER"
_SILENCE_S = 45.0  # longer than anybody waits
_LATEST_S = 40.0  # a request may be so long on its way
_UNREACHABLE = 0.05


class BankSilent(Exception):
    """The bank did not report its decision."""


class VoucherMethod:
    """Takes vouchers in one process."""

    name = NAME
    header_names = (HEADER,)

    def __init__(self, life: Any, bank: Bank) -> None:
        self._life = life
        self._bank = bank

    def challenge(self, quote: Quote, reason: str | None, version: int) -> Challenge:
        return Challenge(body={}, headers={})

    def read(self, header: str) -> MethodProof:
        fields = header.split("|")
        if len(fields) != 6:
            raise PaymentRequired("invalid_payload")
        serial, units, owner, refund_to, _, _ = fields
        return MethodProof(
            key=serial,
            data=header.encode(),
            value_units=int(units),
            payer=owner,
            refund_to=refund_to or None,
        )

    async def check(self, proof: MethodProof, quote: Quote, now: float) -> None:
        await self._life.pause()
        if self._life.world.strikes(_UNREACHABLE, "bank: unreachable"):
            raise ExecutionError("The bank is unreachable; nothing was charged.")
        complaint = self._bank.complaint(proof.data.decode(), now)
        await self._life.pause()
        if complaint is not None:
            raise PaymentRequired(complaint)

    async def settle(self, payment: MethodPayment) -> Taken | Refused:
        life, bank = self._life, self._bank
        life.check_settling(payment)
        mood = bank.mood()
        await life.pause()
        if mood == "error before taking":
            raise BankSilent("status 500")
        if mood == "silent before taking":
            await asyncio.sleep(_SILENCE_S)
        if mood == "takes it later":
            bank.take_later(payment, life.world.dice.uniform(0.0, _LATEST_S))
            await asyncio.sleep(_SILENCE_S)
        answer = bank.take(payment, refuses=mood == "refuses")
        await life.crash_point("voucher decided, its answer not seen")
        await life.pause()
        if mood == "error after taking":
            raise BankSilent("status 502")
        if mood == "silent after taking":
            await asyncio.sleep(_SILENCE_S)
        if mood == "an odd answer":
            odd: Any = {"taken": False}
            return odd
        return answer

    def receipt_headers(self, proof: MethodProof, reference: str | None) -> Mapping[str, Any]:
        return {"X-Receipt": reference} if reference else {}
