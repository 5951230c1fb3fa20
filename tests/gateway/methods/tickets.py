"""A payment method for tests: tickets `<key>:<units>`, with a ledger of redeemed ones."""

import asyncio

import attrs

from gateway import (
    Challenge,
    MethodProof,
    PaymentRequired,
    Refused,
    Taken,
    hookimpl,
)
from gateway.payments.method_purchases import MethodTiming

URL = "/api/x402/picture"
REFUND_TO = "0x" + "d4" * 20


@attrs.define
class Tickets:
    """Tickets; `ledger` records which task took which claim, independent of the core."""

    name: str = "ticket"
    header_names: tuple = ("Authorization: Ticket",)
    ledger: dict = attrs.field(factory=dict)
    # The errors of the next calls of `settle`, before the money is taken or after it.
    raises_before: list = attrs.field(factory=list)
    raises_after: list = attrs.field(factory=list)
    # The reason for refusing tickets.
    refuses: str | None = None
    is_bad: str | None = None
    asked: list = attrs.field(factory=list)
    # Calls of `settle` wait for this.
    opened: asyncio.Event = attrs.field(factory=asyncio.Event)
    was_asked: asyncio.Event = attrs.field(factory=asyncio.Event)
    proof: dict = attrs.field(factory=dict)
    answer: object = None
    # The receipt, or its error.
    receipt: object = None

    def __attrs_post_init__(self):
        self.opened.set()

    def challenge(self, quote, reason, version):
        body = {} if reason is None else {"ticketError": reason}
        return Challenge(
            body=body, headers={"WWW-Authenticate": f'Ticket price="{quote.price_units}"'}
        )

    def read(self, header):
        key, _, units = header.partition(":")
        if not units[:1].isdigit():
            raise PaymentRequired("invalid_payload")
        number = units.partition(":")[0]
        read = {"key": key, "data": header.encode(), "value_units": int(number), "payer": key}
        return MethodProof(**read | self.proof)

    async def check(self, proof, quote, now):
        if self.is_bad is not None:
            raise PaymentRequired(self.is_bad)

    async def settle(self, payment):
        self.asked.append(payment)
        self.was_asked.set()
        await self.opened.wait()
        if self.raises_before:
            raise self.raises_before.pop()
        if self.refuses is not None:
            return Refused(self.refuses)
        if self.ledger.setdefault(payment.claim, payment.task_id) != payment.task_id:
            return Refused("ticket_used")
        if self.raises_after:
            raise self.raises_after.pop()
        return self.answer or Taken(f"stub of {payment.claim}")

    def receipt_headers(self, proof, reference):
        if isinstance(self.receipt, Exception):
            raise self.receipt
        return {"Ticket-Receipt": self.receipt or reference or "unknown"}


@attrs.define
class TicketPlugin:
    tickets: Tickets

    @hookimpl
    def register_payment_method(self, register, context):
        register(self.tickets)


def soon(gateway):
    """Make a gateway retry a method soon."""
    settling = gateway.services.method_settlements
    settling.timing = MethodTiming(first_pause_s=0.01, sweep_s=0.05)


async def pay(gateway, ticket="a:20000", *, slug="picture", key=None, headers=(), **fields):
    """Buy a picture with a ticket."""
    sent = {"Authorization": f"Ticket {ticket}", **dict(headers)}
    if key is not None:
        sent["Idempotency-Key"] = key
    body = {"prompt": "a boat"} | fields
    return await gateway.client.post(f"/api/x402/{slug}", json=body, headers=sent)


async def bought(gateway, *args, **fields):
    """Pay with a ticket, and return the task's id."""
    answer = await pay(gateway, *args, **fields)
    assert answer.status_code == 200, await answer.get_data()
    return (await answer.get_json())["taskId"]


async def refused(gateway, *args, **fields):
    """Pay with a ticket that is refused, and return the reason."""
    answer = await pay(gateway, *args, **fields)
    assert answer.status_code == 402, await answer.get_data()
    return (await answer.get_json())["ticketError"]
