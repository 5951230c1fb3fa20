"""What the page asks while a person pays by a QR code: an amount of its own, and its transfer."""

from typing import Any

from quart import Blueprint, Response, jsonify, request

from gateway.errors import ValidationError
from gateway.store.reserved_amounts import ReservedAmount
from gateway.web.front.answers import NOT_STORED
from gateway.web.front.current import current_gateway
from gateway.web.validation import check_idempotency_key
from gateway_shop.amounts import Amounts


async def reserve_amount() -> Response:
    """Reserve an amount above the price `units` of an offer for the caller's Idempotency-Key.

    The answer has `units`, and `payBy` in Unix seconds. A repeat gets the same amount.
    """
    slug, units = request.args.get("slug", ""), request.args.get("units", "")
    if not (units.isascii() and units.isdecimal() and len(units) < 16):  # noqa: PLR2004 - an int64
        raise ValidationError("units must be a price in units of 10^-6 USDC.")
    amount = await _amounts().reserve(slug, int(units), _read_key())
    return _answer(amount)


async def find_transfer() -> Response:
    """Return the caller's amount, and the hash of its transfer as `transaction`, or null."""
    amount, tx_hash = await _amounts().find(_read_key())
    return _answer(amount, transaction=tx_hash)


def _answer(amount: ReservedAmount, **more: Any) -> Response:
    answer = jsonify({"units": str(amount.units), "payBy": int(amount.pay_by), **more})
    answer.headers.update(NOT_STORED)
    return answer


def _read_key() -> str:
    key = check_idempotency_key(request.headers.get("Idempotency-Key"))
    if key is None:
        raise ValidationError("The header Idempotency-Key is missing.")
    return key


def _amounts() -> Amounts:
    return current_gateway().find(Amounts)


def make_amount_blueprint() -> Blueprint:
    """Return the blueprint of `POST /pay/amount`."""
    blueprint = Blueprint("pay_amount", __name__)
    blueprint.add_url_rule("/pay/amount", view_func=reserve_amount, methods=["POST"])
    return blueprint


def make_transfer_blueprint() -> Blueprint:
    """Return the blueprint of `GET /pay/transfer`."""
    blueprint = Blueprint("pay_transfer", __name__)
    blueprint.add_url_rule("/pay/transfer", view_func=find_transfer, methods=["GET"])
    return blueprint
