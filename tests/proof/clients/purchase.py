"""One purchase: a client's script buys, and its output is compared with wire, task and chain."""

import asyncio
import base64
import json
import os
import re
import time

import attrs

from tests.proof.clients import mcp_calls
from tests.proof.clients.places import Place
from tests.proof.clients.shop import FUNDS_UNITS, PRICE_UNITS, Shop
from tests.proof.clients.tap import Exchange

_BUY_S = 120
_ERROR = re.compile(r"[\w.]*(Error|Exception)\b")  # httpx and viem add lines of advice after it
_OURS = re.compile(r"GATEWAY_.*|PYTHONPATH|NODE_OPTIONS|(https?|all)_proxy", re.IGNORECASE)


class Failed(Exception):
    """A client did not buy correctly; the message is one line."""


@attrs.frozen(kw_only=True)
class Bought:
    """The observations of a correct purchase."""

    # `v1` and `v2` of x402, or `mpp`.
    protocol: str
    header: str
    statuses: tuple[int, ...]
    task_status: str
    transaction: str
    seconds: float


async def buy(place: Place, shop: Shop, *, by_mcp: bool = False) -> Bought:
    """Let a new customer buy with a client, over HTTP or by a tool; raises `Failed`."""
    shop.gateway.check()
    customer = shop.customer()
    before, started = len(shop.tap.exchanges), time.monotonic()
    code, output, complained = await _run(place, shop.tap.url, customer.key.to_0x_hex())
    seconds = time.monotonic() - started
    asked = [one for one in shop.tap.exchanges[before:] if one.target.startswith("/api/x402/")]
    if by_mcp:
        asked = mcp_calls.purchases(shop.tap.exchanges[before:])
    if code:
        raise Failed(_complaint(complained, asked))
    claimed = _claims(output)
    protocol, header = _payment(asked)
    task = shop.task(json.loads(asked[-1].body)["taskId"])
    transaction = task["payment"]["transaction"]
    _expect("the task", task["status"], "completed")
    _expect("the task, says the client,", claimed["status"], "completed")
    _expect("the settlement, says the client,", claimed["transaction"], transaction)
    check_chain(shop, customer.address, transaction)
    return Bought(
        protocol=protocol,
        header=header,
        statuses=tuple(one.status for one in asked),
        task_status=task["status"],
        transaction=transaction,
        seconds=seconds,
    )


async def give_up(place: Place, shop: Shop, *, by_mcp: bool = False) -> str:
    """Run a client for a new customer while settlement is impossible; return its output.

    Raises `Failed` unless the client gives up without a signature.
    """
    customer = shop.customer()
    before = len(shop.tap.exchanges)
    code, _, complained = await _run(place, shop.tap.url, customer.key.to_0x_hex())
    requests = shop.tap.exchanges[before:]
    asked = [one for one in requests if one.target.startswith("/api/x402/")]
    if by_mcp:
        asked = mcp_calls.purchases(requests)
    _expect("the answers of a shop that settles nothing", {one.status for one in asked}, {402})
    _expect("the payments sent there", [one.payments for one in asked if one.payments], [])
    _expect("what the customer has there", shop.chain.usdc_balance(customer.address), FUNDS_UNITS)
    if not code:
        raise Failed("the client did not say that it could not buy where nothing can be settled")
    return _complaint(complained, [])


async def _run(place: Place, shop_url: str, key: str) -> tuple[int, str, str]:
    kept = {name: value for name, value in os.environ.items() if not _OURS.fullmatch(name)}
    process = await asyncio.create_subprocess_exec(
        *place.command,
        env=kept | {"SHOP_URL": shop_url, "PRIVATE_KEY": key, "NO_PROXY": "*"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, complained = await asyncio.wait_for(process.communicate(), _BUY_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise Failed(f"the client was not done after {_BUY_S} seconds") from None
    return process.returncode or 0, output.decode(), complained.decode()


def _complaint(complained: str, asked: list[Exchange]) -> str:
    """Return the last line that names an error, and the gateway's reason if it refused."""
    lines = [line.rstrip() for line in complained.splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.match(line)]
    message = (named or lines or ["the client said nothing"])[-1]
    if not asked or asked[-1].status == 200:
        return message
    return f"{message} (the gateway answered {asked[-1].status}: {_reason(asked[-1].body)})"


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return "no reason"


def _claims(said: str) -> dict:
    try:
        claimed = json.loads(said.strip().splitlines()[-1])
        return {"status": claimed["status"], "transaction": claimed["transaction"]}
    except (ValueError, IndexError, KeyError, TypeError):
        raise Failed("the client did not print what it bought") from None


def _payment(asked: list[Exchange]) -> tuple[str, str]:
    """Return the protocol and name of the payment header:

    absent before the 402, present after it.
    """
    _expect("the answers", [one.status for one in asked], [402, 200])
    _expect("payments sent before the 402", list(asked[0].payments), [])
    if len(asked[1].payments) != 1:
        raise Failed(f"payment headers sent were {list(asked[1].payments)}")
    ((name, value),) = asked[1].payments.items()
    if value.startswith("Payment "):
        return "mpp", name.upper()
    return f"v{json.loads(base64.b64decode(value))['x402Version']}", name.upper()


def check_chain(shop: Shop, customer: str, transaction: str) -> None:
    receipt = shop.chain.receipt(transaction)
    _expect("the settlement's receipt", receipt and receipt["status"], "0x1")
    once = [(transaction, shop.wallet.lower(), PRICE_UNITS)]
    _expect("the customer's transfers", shop.transfers_of(customer), once)
    left = shop.chain.usdc_balance(customer)
    _expect("what the customer has left", left, FUNDS_UNITS - PRICE_UNITS)


def _expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise Failed(f"{what} should be {wanted}, not {found}")
