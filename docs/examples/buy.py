"""Buy a picture with the official x402 client: pip install 'x402[evm,requests]'.

Without any variable set the script buys from a running `gateway demo`, with the demo's play money.
"""

import os
import sys
from pathlib import Path

from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client

GATEWAY = os.environ.get("GATEWAY", "http://127.0.0.1:8402")
# The demo funds this key, which is public: never send real money to it.
PLAY_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
PROMPT = sys.argv[1] if len(sys.argv) > 1 else "a lighthouse above a stormy sea at night"

wallet = x402ClientSync()
register_exact_evm_client(
    wallet, EthAccountSigner(Account.from_key(os.environ.get("BUYER_KEY", PLAY_KEY)))
)
http = x402_requests(wallet)  # pays whatever answers 402

paid = http.post(f"{GATEWAY}/api/x402/sandbox-image", json={"prompt": PROMPT}, timeout=60)
paid.raise_for_status()
task = http.get(f"{GATEWAY}{paid.json()['statusUrl']}?wait=30", timeout=60).json()
print(task["status"], "paid by", task["payment"]["transaction"])

picture = http.get(task["result"]["outputs"][0]["url"], timeout=60).content
Path("bought.png").write_bytes(picture)
print("bought.png", len(picture), "bytes")
