"""Buy a picture with the official x402 client: pip install 'x402[evm,requests]'.

Without variables the script buys from a running `gateway demo` with its play money.
"""

import argparse
import hashlib
import os
import secrets
import sys
from pathlib import Path

import requests
from eth_account import Account
from x402 import max_amount, x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("prompt", nargs="?", default="a lighthouse above a stormy sea at night")
PROMPT = parser.parse_args().prompt
GATEWAY = os.environ.get("GATEWAY", "http://127.0.0.1:8402")
# The demo funds this key, which is public: never send real money to it.
PLAY_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
# The limit per payment, in units of a millionth USDC.
MAX_UNITS = 100_000

# 1. A session that pays every 402 up to the limit. Use it for the purchase only.
wallet = x402ClientSync()
account = Account.from_key(os.environ.get("BUYER_KEY", PLAY_KEY))
register_exact_evm_client(wallet, EthAccountSigner(account), policies=[max_amount(MAX_UNITS)])
payer = x402_requests(wallet)

# 2. Buy. If the response is lost, run this again with the same key and prompt: it pays only once.
key = os.environ.get("IDEMPOTENCY_KEY") or secrets.token_hex(16)
print(f"IDEMPOTENCY_KEY={key}", flush=True)
url = f"{GATEWAY}/api/x402/sandbox-image"
paid = payer.post(url, json={"prompt": PROMPT}, headers={"Idempotency-Key": key}, timeout=60)
if not paid.ok:
    sys.exit(f"{paid.status_code} {paid.text}")

# 3. Poll. Each response comes when the task is done, or after 30 seconds.
task = {"done": False}
while not task["done"]:
    task = requests.get(f"{GATEWAY}{paid.json()['statusUrl']}?wait=30", timeout=60).json()
if task["status"] != "completed":
    sys.exit(f"{task['error']} ({task['details']}), refund: {task['refund']}")
print(task["status"], "paid by", task["payment"]["transaction"])

# 4. Save.
output = task["result"]["outputs"][0]
picture = requests.get(output["url"], timeout=60).content
if hashlib.sha256(picture).hexdigest() != output["sha256"]:
    sys.exit("The file does not match its SHA-256.")
Path("bought.png").write_bytes(picture)
print("bought.png", len(picture), "bytes")
