"""One purchase, from its price to the saved files. Every step can be repeated without paying twice.

If the response to a payment is lost, the same payment is sent again. If the gateway answers a
payment with 402, the purchase ends: only the buyer may decide to sign another one.
"""

import asyncio
import base64
import functools
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import attrs

from gateway.chain.keys import address_of
from gateway.chain.smart_wallets import sign_authorization
from gateway.domain import Authorization
from gateway.domain.failure_reasons import failure_in_words
from gateway_buyer.answers import Output, Refund, Task, shorten
from gateway_buyer.client import GatewayClient
from gateway_buyer.errors import (
    GenerationFailed,
    NotBought,
    Unanswered,
    Unfinished,
    Unreachable,
)
from gateway_buyer.files import Destination
from gateway_buyer.records import Record, Records, hash_request
from gateway_buyer.terms import Terms, check_price

# Of all files of a task.
MAX_RESULT_BYTES = 200_000_000
_Got = TypeVar("_Got")


@attrs.frozen(kw_only=True)
class Timing:
    """How long a buyer waits, in seconds."""

    # The pauses between retries of one request.
    pauses_s: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)

    # The shortest interval between polls of a task.
    poll_s: float = 1.0

    # For fetching all files of a task.
    save_s: float = 1_800.0


@attrs.frozen(kw_only=True)
class Hints:
    """How a buyer repeats a purchase, in words."""

    repeat: str = "repeat it with --idempotency-key {key}, or buy again after that"
    expired: str = "To buy again, leave out --idempotency-key: a new one is another purchase."
    is_taken: str = (
        "This --idempotency-key bought something else. Leave it out for a new purchase, or repeat "
        "the command as it was."
    )


@attrs.frozen(kw_only=True)
class Order:
    """A request to buy. `key` is the Idempotency-Key."""

    url: str
    slug: str
    body: Mapping[str, Any] = attrs.field(repr=False)
    key: str


@attrs.frozen(kw_only=True)
class Buyer:
    """Buys from a gateway. `report` gets a progress message for each step."""

    records: Records
    report: Callable[[str], None]
    timing: Timing = Timing()
    hints: Hints = Hints()

    def find(self, order: Order) -> Record | None:
        """Return the payment that was signed earlier for this order, or None.

        Raises `NotBought` if the key was used for another request.
        """
        record = self.records.find(order.url, order.key)
        if record is None:
            return None
        if (record.slug, record.request) != (order.slug, hash_request(order.body)):
            raise NotBought(self.hints.is_taken)
        return record

    async def ask_price(self, order: Order, max_units: int) -> Terms:
        """Return the terms; raises `NotBought`, also for a price above `max_units`."""
        async with GatewayClient(order.url) as client:
            try:
                terms = await self._persist(
                    lambda: client.ask_price(order.slug, order.body), needs_connection=True
                )
            except Unanswered as error:
                raise NotBought(f"{error} Nothing was signed.") from None
        check_price(terms, max_units)
        return terms

    def sign(self, order: Order, terms: Terms, secret: bytes) -> Record:
        """Sign the terms and store the payment; raises `NotBought`."""
        signed = authorize(terms, secret, now=time.time())
        record = Record(
            url=order.url,
            slug=order.slug,
            key=order.key,
            request=hash_request(order.body),
            payment=payment_header(terms, signed),
            price_units=terms.price_units,
            payee=terms.payee,
            network=terms.network.name,
            valid_before=signed.valid_before,
        )
        self.records.add(record)
        return record

    async def pay(self, order: Order, record: Record) -> Record:
        """Send the payment until the gateway names the task, and return the record with it.

        Raises `NotBought` if the gateway refuses, and `Unfinished` without a response.
        """
        if record.task_id is not None:
            return record
        async with GatewayClient(order.url) as client:
            try:
                task_id = await self._persist(lambda: client.pay(record, order.body))
            except NotBought as error:
                raise NotBought(f"{error} {self._explain_refused(record)}") from None
            except Unanswered as error:
                raise Unfinished(f"{error} Whether it was paid is not known.") from None
        return self.records.note_task(record, task_id)

    async def follow(self, url: str, task_id: str, *, timeout_s: float) -> Task:
        """Poll a task until it is completed.

        Raises `GenerationFailed`, and `Unfinished` if it is not done in time.
        """
        deadline = time.monotonic() + timeout_s
        shown = ""
        async with GatewayClient(url) as client:
            while True:
                began = time.monotonic()
                task = await self._poll(client, task_id)
                if task is not None and task.done:
                    return check_completed(task)
                if task is not None and (state := _describe(task)) != shown:
                    shown = state
                    self.report(state)
                now = time.monotonic()
                if now > deadline:
                    raise Unfinished(f"The task is not done after {timeout_s:.0f} seconds.")
                # A gateway that ignores `?wait=` is polled once a second.
                await asyncio.sleep(max(0.0, self.timing.poll_s - (now - began)))

    async def save(self, url: str, task: Task, destination: Destination) -> list[Path]:
        """Fetch and save a completed task's files; raises `Unfinished`.

        Files that are saved already are not fetched again.
        """
        outputs = task.result.outputs if task.result is not None else []
        if not outputs:
            raise Unfinished("The task is completed, but its result has no file.")
        total_bytes = sum(output.size_bytes for output in outputs)
        if total_bytes > MAX_RESULT_BYTES:
            raise Unfinished(
                f"The files have {total_bytes:,} bytes. This program saves up to "
                f"{MAX_RESULT_BYTES:,}: fetch them by hand from {url}/api/task/{task.task_id}"
            )
        media_types = [output.mime_type for output in outputs]
        paths = destination.choose_paths(task.slug, task.task_id, media_types)
        try:
            async with asyncio.timeout(self.timing.save_s), GatewayClient(url) as client:
                for output, path in zip(outputs, paths, strict=True):
                    await self._save(client, output, path, destination)
        except TimeoutError:
            raise Unfinished(
                f"The files did not arrive within {self.timing.save_s:.0f} seconds. The ones that "
                "did are saved."
            ) from None
        return paths

    async def _save(
        self, client: GatewayClient, output: Output, path: Path, destination: Destination
    ) -> None:
        # An earlier run may have saved it before it ended.
        if destination.has(path, output.sha256):
            return
        try:
            content = await self._persist(functools.partial(client.fetch, output))
        except Unanswered as error:
            raise Unfinished(str(error)) from None
        destination.save(path, content)

    async def _poll(self, client: GatewayClient, task_id: str) -> Task | None:
        """Return the task; None after a pause if there was no response."""
        try:
            return await client.poll(task_id)
        except Unanswered as error:
            self.report(f"{error} Retrying.")
            await asyncio.sleep(max(self.timing.pauses_s[0], error.retry_after_s))
            return None

    def _explain_refused(self, record: Record) -> str:
        """Return a sentence on whether a refused payment can still be used."""
        if time.time() > record.valid_before:
            return f"It has expired and cannot be used any more. {self.hints.expired}"
        until = datetime.fromtimestamp(record.valid_before, UTC).strftime("%H:%M:%S UTC")
        return f"It can be used until {until}: {self.hints.repeat.format(key=record.key)}."

    async def _persist(
        self, ask: Callable[[], Awaitable[_Got]], *, needs_connection: bool = False
    ) -> _Got:
        """Send a request with a few retries; raises `Unanswered`.

        `needs_connection`: without a connection it fails at once. Only before anything is signed.
        """
        for pause_s in self.timing.pauses_s:
            try:
                return await ask()
            except Unanswered as error:
                if needs_connection and isinstance(error, Unreachable):
                    raise
                wait_s = max(pause_s, error.retry_after_s)
                self.report(f"{error} Retrying in {wait_s:.0f} s.")
                await asyncio.sleep(wait_s)
        return await ask()


def check_completed(task: Task) -> Task:
    """Return a task that is done; raises `GenerationFailed` if it has no result."""
    if task.status == "completed":
        return task
    why = shorten(task.error or "The gateway gives no reason.")
    reason = failure_in_words(task.details)
    sentences = (f"The generation failed: {why}", reason, _describe_refund(task.refund))
    raise GenerationFailed(" ".join(filter(None, sentences)))


def _describe_refund(refund: Refund | None) -> str:
    if refund is None:
        return "The response names no refund."
    amount = "" if refund.amount is None else f" of {refund.amount:g} USDC"
    # Other gateways name a state only.
    state = shorten(refund.message or refund.state.replace("_", " "))
    return f"The refund{amount}: {state}"


def _describe(task: Task) -> str:
    share = f" {task.progress:.0%}" if task.progress is not None else ""
    return f"The task is {shorten(task.status)}{share}."


def authorize(terms: Terms, secret: bytes, *, now: float) -> Authorization:
    """Return the signed authorization of one payment; `now` is in Unix seconds.

    The EIP-712 domain is that of the network's USDC, whatever name the gateway gave.
    """
    unsigned = Authorization(
        sender=address_of(secret),
        recipient=terms.payee.lower(),
        value_units=terms.price_units,
        valid_after=0,
        valid_before=int(now) + terms.valid_s,
        nonce="0x" + secrets.token_hex(32),
        signature=b"",
    )
    return sign_authorization(secret, unsigned, terms.network)


def payment_header(terms: Terms, signed: Authorization) -> str:
    """Return the value of `PAYMENT-SIGNATURE`."""
    payload: dict[str, Any] = {
        "x402Version": 2,
        "accepted": terms.accepted,
        "payload": {
            "signature": "0x" + signed.signature.hex(),
            "authorization": {
                "from": signed.sender,
                "to": signed.recipient,
                "value": str(signed.value_units),
                "validAfter": str(signed.valid_after),
                "validBefore": str(signed.valid_before),
                "nonce": signed.nonce,
            },
        },
    }
    return base64.b64encode(json.dumps(payload, separators=(",", ":")).encode()).decode()
