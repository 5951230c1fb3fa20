"""Tool calls: what each tool does, and its result as MCP's dictionaries."""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from gateway.cli.terminal import blank_control_chars
from gateway_buyer.answers import Offer, shorten
from gateway_buyer.errors import BuyError, GenerationFailed, NotBought, Unfinished
from gateway_buyer.purchase import Order
from gateway_buyer.records import Record
from gateway_buyer.terms import Terms, format_usdc
from gateway_buyer.wallet import tools
from gateway_buyer.wallet.wallet import Bought, Wallet, make_question, name_purchase

_MAX_OFFERS = 100
# Clients refuse answers of more than a megabyte.
_MAX_PICTURE_BYTES = 700_000
_MAX_TEXT_CHARS = 25_000
_PICTURES = {".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif"}
_TEXTS = (".md", ".txt", ".json")
_FILE_FIELDS = ("fileBase64", "fileName")
_REPEATED = (
    "This purchase was signed earlier, and no second payment was made. To buy the same again, give "
    "a new purchase_id."
)
_Result = dict[str, Any]


class PersonAsked(Exception):
    """The question was handed to the client, which sends the call again with the answer."""


# Returns whether the person agrees; raises `NotBought` if the client cannot ask.
Ask = Callable[[str], Awaitable[bool]]


@attrs.frozen(kw_only=True)
class Calls:
    """The tools of one wallet."""

    wallet: Wallet

    async def answer(self, name: str, arguments: Mapping[str, Any], ask: Ask) -> _Result | None:
        """Return the result of a call; None for an unknown tool."""
        if name not in tools.ARGUMENTS:
            return None
        try:
            return await self._answer(
                name, tools.read_arguments(arguments, tools.ARGUMENTS[name]), ask
            )
        except BuyError as error:
            return _text(blank_control_chars(str(error)), is_error=True)

    async def _answer(self, name: str, given: Any, ask: Ask) -> _Result:
        if name == "get_wallet":
            return _json(self._describe_wallet())
        url = self.wallet.choose_url(given.gateway)
        if name == "list_offers":
            return _json(_describe_offers(await self.wallet.list_offers(url)))
        if name == "get_price":
            return await self._get_price(url, given)
        if name == "get_result":
            return await self._get_result(url, given.task_id, {})
        return await self._buy(url, given, ask)

    def _describe_wallet(self) -> dict[str, Any]:
        wallet, spent = self.wallet, self.wallet.allowance.spent()
        per_day = wallet.allowance.per_day_units
        return {
            "address": wallet.address,
            "maxPerPurchase": format_usdc(wallet.limits.per_purchase_units),
            "askAbove": format_usdc(wallet.limits.ask_above_units),
            "maxPer24Hours": format_usdc(per_day),
            "spentIn24Hours": format_usdc(spent),
            "left": format_usdc(max(0, per_day - spent)),
            "currency": "USDC",
            "gateways": list(wallet.urls) or "any https address",
            "folder": str(wallet.folder),
        }

    # -- buying

    async def _get_price(self, url: str, given: tools.Request) -> _Result:
        order = self._make_order(url, given, "")
        terms = await self.wallet.ask_price(order)
        described = _describe_terms(terms)
        try:
            self.wallet.check(terms)
        except NotBought as error:
            return _json(described | {"isAllowed": False, "reason": str(error)})
        asks = terms.price_units > self.wallet.limits.ask_above_units
        return _json(described | {"isAllowed": True, "asksThePerson": asks})

    async def _buy(self, url: str, given: tools.Purchase, ask: Ask) -> _Result:
        order = self._make_order(url, given, given.purchase_id)
        record = self.wallet.buyer.find(order)
        is_repeat = record is not None
        if record is None:
            terms = await self.wallet.ask_price(order)
            self.wallet.check(terms)
            await self._agree(order, terms, ask)
            record = self.wallet.sign(order, terms)
        record = await self.wallet.pay(order, record)
        paid = _describe_payment(record)
        if is_repeat:
            paid["note"] = _REPEATED
        return await self._get_result(url, str(record.task_id), paid)

    async def _agree(self, order: Order, terms: Terms, ask: Ask) -> None:
        """Ask the person about a high price; raises `NotBought` without their consent."""
        if terms.price_units <= self.wallet.limits.ask_above_units:
            return
        if not await ask(blank_control_chars(make_question(order, terms))):
            raise NotBought("The person did not agree to this price. Nothing was signed.")

    def _make_order(self, url: str, given: tools.Request, purchase_id: str) -> Order:
        body = given.fields()
        if given.file:
            body |= self.wallet.read_file(given.file)
        key = name_purchase(purchase_id, given.slug, body)
        return Order(url=url, slug=given.slug, body=body, key=key)

    # -- results

    async def _get_result(self, url: str, task_id: str, paid: Mapping[str, Any]) -> _Result:
        """Return a task's result. Errors keep what was paid, and the task's id."""
        known = {"taskId": task_id, "gateway": url, **paid}
        try:
            bought = await self.wallet.fetch(url, task_id)
        except GenerationFailed as error:
            return _json(known | {"status": "failed", "error": str(error)}, is_error=True)
        except (Unfinished, OSError) as error:
            reason = f"{error} It is paid for: call get_result later." if paid else str(error)
            return _json(known | {"error": reason}, is_error=True)
        return _describe_bought(bought, known)


def _describe_offers(offers: list[Offer]) -> dict[str, Any]:
    shown = [_describe_offer(offer) for offer in offers[:_MAX_OFFERS]]
    return {"offers": shown, "currency": "USDC", "notShown": len(offers) - len(shown)}


def _describe_offer(offer: Offer) -> dict[str, Any]:
    needs = ["file" if name in _FILE_FIELDS else shorten(name) for name in offer.required_fields]
    options = {shorten(name): choice.values[:40] for name, choice in offer.optional_fields.items()}
    return {
        "slug": offer.slug,
        "title": shorten(offer.title),
        "description": shorten(offer.description),
        "capability": shorten(offer.capability),
        "priceFrom": offer.price,
        "needs": list(dict.fromkeys(needs)),
        "options": {name: [shorten(value) for value in values] for name, values in options.items()},
    }


def _describe_terms(terms: Terms) -> dict[str, Any]:
    return {
        "price": format_usdc(terms.price_units),
        "currency": "USDC",
        "network": terms.network.name,
        "payTo": terms.payee,
        "refund": terms.refund,
    }


def _describe_payment(record: Record) -> dict[str, Any]:
    return {
        "paid": format_usdc(record.price_units),
        "currency": "USDC",
        "network": record.network,
        "payTo": record.payee,
    }


def _describe_bought(bought: Bought, known: Mapping[str, Any]) -> _Result:
    task = bought.task
    shown = {**known, "status": shorten(task.status), "files": [str(path) for path in bought.paths]}
    if task.payment is not None and task.payment.transaction is not None:
        shown["transaction"] = shorten(task.payment.transaction)
    if not task.done:
        shown["next"] = "The task is not done yet: call get_result with this taskId."
    result = _json(shown)
    for path in bought.paths:
        result["content"] += _show_file(path)
    return result


def _show_file(path: Path) -> list[dict[str, Any]]:
    """Return a small picture, or the beginning of a text; nothing for other files."""
    kind = _PICTURES.get(path.suffix)
    if kind is not None and path.stat().st_size <= _MAX_PICTURE_BYTES:
        data = base64.b64encode(path.read_bytes()).decode()
        return [{"type": "image", "data": data, "mimeType": kind}]
    if path.suffix in _TEXTS:
        with path.open(encoding="utf-8", errors="replace") as file:
            return [{"type": "text", "text": file.read(_MAX_TEXT_CHARS)}]
    return []


def _json(value: Mapping[str, Any], *, is_error: bool = False) -> _Result:
    return _text(json.dumps(value, indent=1), is_error=is_error) | {
        "structuredContent": dict(value)
    }


def _text(text: str, *, is_error: bool = False) -> _Result:
    return {"isError": is_error, "content": [{"type": "text", "text": text}]}
