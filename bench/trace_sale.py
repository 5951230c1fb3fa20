"""Counts the files and functions of the gateway that one x402 sale crosses, and its task.

It sells pictures on the embedded chain, in this process, and counts the calls of every sale in all
threads by `sys.setprofile`. `--list` prints the functions in the order of their first calls.
Another checkout is measured by its own Python: `../older/.venv/bin/python bench/trace_sale.py`.
"""

import asyncio
import base64
import json
import sys
import tempfile
import threading
from pathlib import Path

import attrs
from eth_account import Account

import gateway
from gateway import Endpoint, Output, Result, Settings, hookimpl, usdc
from gateway.app import create_app
from gateway_demo.chain import PlayChain
from gateway_demo.token import Authorization

WALLET = "0x7cf1a6bd3fb7a9c1a5e2a3f9c2db2f3a4b5c6d7e"
_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_ROOT = Path(gateway.__file__).parents[1]
_OURS = tuple(f"{_ROOT}/{name}/" for name in ("gateway", "plugins"))
_SALES = 5
_NOT_OURS = ("/gateway_demo/",)


class Instant:
    """A provider that has its picture at once."""

    name = "instant"

    async def submit(self, *_):
        """Return the picture."""
        return Result(outputs=(Output(data=_PIXEL, media_type="image/png", width=1, height=1),))

    @hookimpl
    def register_endpoints(self, register):
        """Sell it."""
        endpoint = Endpoint(
            slug="instant",
            title="A picture",
            description="One pixel.",
            capability="text-to-image",
            price_units=usdc("0.02"),
            model="instant",
            provider="instant",
        )
        register(endpoint, self)


Calls = dict[tuple[str, str], None]
"""(File, function) in the order of their first calls."""


@attrs.define
class Trace:
    """What was called while it was on."""

    is_on: bool = False
    calls: Calls = attrs.field(factory=dict)

    def __call__(self, frame, event, _):
        """Note a call of a function of the gateway."""
        if self.is_on and event == "call":
            code = frame.f_code
            if code.co_filename.startswith(_OURS) and not any(
                part in code.co_filename for part in _NOT_OURS
            ):
                self.calls.setdefault((code.co_filename, code.co_qualname))


def _common(sales: list[Calls]) -> Calls:
    """Return the calls of every sale: background work falls into some of them only."""
    return {call: None for call in sales[0] if all(call in one for one in sales)}


def _row(name: str, calls: Calls) -> str:
    """Return a row of the table."""
    files = {file for file, _ in calls}
    return f"{name:<28}{len(files):>6} files {len(calls):>6} functions"


def _header(chain: PlayChain, account) -> str:
    signed = Authorization(sender=account.address, to=WALLET, units=20_000)
    payload = {
        "signature": "0x" + signed.sign(account.key, chain.chain_id, chain.usdc).hex(),
        "authorization": {
            "from": signed.sender,
            "to": signed.to,
            "value": str(signed.units),
            "validAfter": str(signed.valid_after),
            "validBefore": str(signed.valid_before),
            "nonce": "0x" + signed.nonce.hex(),
        },
    }
    body = {"x402Version": 1, "scheme": "exact", "network": "base", "payload": payload}
    return base64.b64encode(json.dumps(body).encode()).decode()


async def _sell(client, header: str, trace: Trace) -> tuple[Calls, Calls]:
    """Buy a picture; returns the calls up to the answer, and up to the task's end."""
    trace.calls = {}
    trace.is_on = True
    body = json.dumps({"prompt": "a boat"})
    # Quart's client leaves the length out, which real clients send.
    headers = {"X-PAYMENT": header, "Content-Type": "application/json", "Content-Length": len(body)}
    answer = await client.post("/api/x402/instant", data=body, headers=headers)
    until_answer = dict(trace.calls)
    # A poll would add the calls of its own route.
    await asyncio.sleep(1)
    trace.is_on = False
    task_id = (await answer.get_json())["taskId"]
    task = await (await client.get(f"/api/task/{task_id}?wait=20")).get_json()
    if task["status"] != "completed":
        raise SystemExit(f"The task did not complete: {task}")
    return until_answer, trace.calls


async def main() -> None:
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    chain = PlayChain()
    chain.start()
    keys = Account.create(), Account.create()
    for account in keys:
        chain.fund(account.address, eth_wei=10**18, usdc_units=100_000_000)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            base_url="http://gateway.test",
            wallet=WALLET,
            rpc_urls=(chain.rpc_url,),
            data_dir=Path(folder),
            settlement_key=keys[0].key.hex(),
            min_free_disk_mb=0,
        )
        app = create_app(settings, plugins=[Instant()])
        async with app.test_app():
            client = app.test_client()
            await client.get("/api/health")
            sales = [await _sell(client, _header(chain, keys[1]), trace) for _ in range(_SALES)]
    # The first one waits for imports.
    sale, task = (_common(list(calls)) for calls in zip(*sales[1:], strict=True))
    if "--list" in sys.argv:
        later = [each for each in task if each not in sale]
        for file, name in [*sale, ("", "-- answered --"), *later]:
            sys.stdout.write(f"{file.removeprefix(f'{_ROOT}/')}: {name}\n")
    sys.stdout.write(f"{_row('x402 sale', sale)}\n{_row('sale and task', task)}\n")
    sys.setprofile(None)
    chain.stop()


if __name__ == "__main__":
    asyncio.run(main())
