"""The wallet: checks a request against the limits, pays, and saves results."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs

from gateway.chain.keys import address_of
from gateway.domain.eip3009 import checksum_address
from gateway_buyer.answers import Offer, Task, shorten
from gateway_buyer.client import GatewayClient, check_url
from gateway_buyer.errors import AlreadySigned, NotBought, Unanswered, Unfinished
from gateway_buyer.files import Destination, read_file
from gateway_buyer.purchase import Buyer, Hints, Order, Timing, check_completed
from gateway_buyer.records import Record
from gateway_buyer.terms import Terms, check_price, format_usdc
from gateway_buyer.wallet.allowance import Allowance

HINTS = Hints(
    repeat="call buy again with the same arguments",
    expired="To buy it after all, call buy with a new purchase_id: that is another payment.",
    is_taken="This purchase_id bought something else. Choose another one for a new purchase, or "
    "repeat the call as it was.",
)
# Clients time out after a minute.
TIMING = Timing(pauses_s=(1.0, 2.0, 4.0), save_s=120.0)
_WAY_OUT = "Ask the person to move it away, then call get_result."
_TOO_DEAR = "To allow more, the person restarts this server with a higher --max."
_PAY_S = 35.0
# Above every limit: `get_price` also shows prices that `buy` refuses.
_ANY_PRICE = 10**18
_AGAIN = "Call buy again with the same arguments: it sends the same payment, so it pays only once."


@attrs.frozen(kw_only=True)
class Limits:
    """The most that the wallet may pay, in units of 10⁻⁶ USDC."""

    per_purchase_units: int
    # More than this is paid only after the person agreed.
    ask_above_units: int


@attrs.frozen(kw_only=True)
class Bought:
    """A finished purchase, or one that is still running (`paths` is empty then)."""

    task: Task
    paths: list[Path]


@attrs.frozen(kw_only=True)
class Wallet:
    """A key with limits."""

    secret: bytes = attrs.field(repr=False)
    limits: Limits
    allowance: Allowance
    buyer: Buyer

    # Results are saved here, and only files in it are sent.
    folder: Path

    # The gateways that may be asked; empty: all.
    urls: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The address that pays, with its checksum."""
        return checksum_address(address_of(self.secret))

    def choose_url(self, url: str) -> str:
        """Return the URL of the gateway to ask; raises `NotBought`."""
        if not url:
            if len(self.urls) == 1:
                return self.urls[0]
            raise NotBought("Name the gateway's URL in gateway.")
        try:
            url = check_url(url)
        except ValueError as error:
            raise NotBought(f"gateway is not a gateway's URL: {error}.") from None
        if self.urls and url not in self.urls:
            raise NotBought(f"This wallet buys only at {', '.join(self.urls)}.")
        return url

    def read_file(self, name: str) -> dict[str, str]:
        """Return the fields of a request that send a file of the folder; raises `NotBought`."""
        folder = self.folder.resolve()
        try:
            path = (folder / name).resolve()
            is_inside = path.is_relative_to(folder) and path.is_file()
        except (OSError, ValueError):
            # The name is too long, or has a NUL.
            is_inside = False
        if not is_inside:
            raise NotBought(f"There is no such file in {folder}. Only files there can be sent.")
        try:
            return read_file(path)
        except ValueError as error:
            raise NotBought(str(error)) from None

    async def list_offers(self, url: str) -> list[Offer]:
        """Return a gateway's offers; raises `NotBought`."""
        async with GatewayClient(url) as client:
            try:
                return await client.list_offers()
            except Unanswered as error:
                raise NotBought(str(error)) from None

    async def ask_price(self, order: Order) -> Terms:
        """Return the terms of an order, whatever the price; raises `NotBought`."""
        return await self.buyer.ask_price(order, _ANY_PRICE)

    def check(self, terms: Terms) -> None:
        """Raise `NotBought` if the price is above a limit."""
        self._check_limit(terms)
        self.allowance.check(terms.price_units)

    def _check_limit(self, terms: Terms) -> None:
        check_price(terms, self.limits.per_purchase_units, way_out=_TOO_DEAR)

    def sign(self, order: Order, terms: Terms) -> Record:
        """Count the price as spent, then sign it. An order that is signed already stays so.

        Raises `NotBought`.
        """
        # The person took time to answer, and another call may have signed meanwhile.
        if (record := self.buyer.find(order)) is not None:
            return record
        self._check_limit(terms)
        number = self.allowance.reserve(terms.price_units)
        try:
            return self.buyer.sign(order, terms, self.secret)
        except AlreadySigned:
            self.allowance.release(number)
            raise
        except NotBought:
            # A record that could be read later would be paid.
            if self.buyer.records.find(order.url, order.key) is None:
                self.allowance.release(number)
            raise

    async def pay(self, order: Order, record: Record) -> Record:
        """Send a signed payment, and return the record with its task.

        Raises `NotBought`, and `Unfinished` if the outcome is unknown.
        """
        try:
            async with asyncio.timeout(_PAY_S):
                return await self.buyer.pay(order, record)
        except Unfinished as error:
            raise Unfinished(f"{error} {_AGAIN}") from None
        except TimeoutError:
            raise Unfinished(
                f"The gateway does not answer. Whether it was paid is not known. {_AGAIN}"
            ) from None

    async def fetch(self, url: str, task_id: str) -> Bought:
        """Wait up to 20 seconds for a task, and save its files if it is completed.

        Raises `GenerationFailed`, and `Unfinished` if the task cannot be read or saved.
        """
        async with GatewayClient(url) as client:
            try:
                task = await client.poll(task_id)
            except Unanswered as error:
                raise Unfinished(str(error)) from None
        if not task.done:
            return Bought(task=task, paths=[])
        self.folder.mkdir(parents=True, exist_ok=True)
        destination = Destination(path=self.folder, may_overwrite=False, way_out=_WAY_OUT)
        paths = await self.buyer.save(url, check_completed(task), destination)
        return Bought(task=task, paths=paths)


def name_purchase(purchase_id: str, slug: str, body: Mapping[str, Any]) -> str:
    """Return the Idempotency-Key of a purchase.

    Without an id of the caller's, the same request is the same purchase.
    """
    named: Any = {"id": purchase_id} if purchase_id else {"slug": slug, "body": body}
    return "mcp-" + hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:40]


def make_question(order: Order, terms: Terms) -> str:
    """Return the question to the person; the same terms give the same question.

    A model that is steered chose the URL's path, the file and the prompt: the path is not shown,
    the others are one line each.
    """
    file = shorten(str(order.body.get("fileName", "")))
    prompt = shorten(str(order.body.get("prompt", "")))
    lines = [
        f"Pay {format_usdc(terms.price_units)} USDC on {terms.network.name} for {order.slug}?",
        f"Gateway: {urlsplit(order.url).netloc}",
        f"To: {terms.payee}",
        *([f"File: {file}"] if file else []),
        *([f"Prompt: {prompt}"] if prompt else []),
        terms.refund,
    ]
    return "\n".join(lines)
