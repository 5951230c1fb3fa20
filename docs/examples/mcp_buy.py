"""Buy a picture over MCP: pip install mcp 'x402[evm,requests]'.

Without variables the script buys from a running `gateway demo` with its play money. An agent does
the same: it calls a tool, reads the price, signs it, and calls the tool again.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path

import requests
from eth_account import Account
from mcp import Client
from x402 import max_amount, x402Client
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client
from x402.schemas import PaymentRequired

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("prompt", nargs="?", default="a lighthouse above a stormy sea at night")
PROMPT = parser.parse_args().prompt
GATEWAY = os.environ.get("GATEWAY", "http://127.0.0.1:8402")
# The demo funds this key, which is public: never send real money to it.
PLAY_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
# The limit per purchase, in units of a millionth USDC.
MAX_UNITS = 100_000


async def buy():
    """Return the purchased task once it is done."""
    wallet = x402Client()
    account = Account.from_key(os.environ.get("BUYER_KEY", PLAY_KEY))
    register_exact_evm_client(wallet, EthAccountSigner(account), policies=[max_amount(MAX_UNITS)])
    async with Client(f"{GATEWAY}/mcp") as gateway:
        # 1. The first response is the price.
        asked = await gateway.call_tool("sandbox_image", {"prompt": PROMPT})
        price = PaymentRequired.model_validate(asked.structured_content)
        # 2. Sign it, and call again. If the response is lost, the same payment may be sent again.
        payment = await wallet.create_payment_payload(price)
        meta = {"x402/payment": payment.model_dump(by_alias=True, exclude_none=True)}
        bought = await gateway.call_tool("sandbox_image", {"prompt": PROMPT}, meta=meta)
        task = bought.structured_content
        # 3. Poll.
        while task.get("done") is False:
            wait = {"taskId": task["taskId"], "wait": 30}
            task = (await gateway.call_tool("get_task", wait)).structured_content
    return task


task = asyncio.run(buy())
if task.get("status") != "completed":
    sys.exit(f"{task.get('error')} ({task.get('details')})")
print(task["status"], "paid by", task["payment"]["transaction"])
picture = requests.get(task["result"]["outputs"][0]["url"], timeout=60).content
Path("bought.png").write_bytes(picture)
print("bought.png", len(picture), "bytes")
