"""Buy a picture by a plain USDC transfer, and prove who sent the transfer: pip install web3.

Without any variable set the script buys from a running `gateway demo`, with the demo's play money.
"""

import hashlib
import json
import os
import secrets
import sys
from decimal import Decimal
from pathlib import Path

import requests
from eth_account import Account
from web3 import Web3

GATEWAY = os.environ.get("GATEWAY", "http://127.0.0.1:8402")
RPC = os.environ.get("RPC", "http://127.0.0.1:8545")
# USDC has this address on Base and on the demo's chain.
USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
# The demo funds this key, which is public: never send real money to it.
PLAY_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
PROMPT = sys.argv[1] if len(sys.argv) > 1 else "a lighthouse above a stormy sea at night"
SLUG = "sandbox-image"
# The most that one purchase may cost, in units of a millionth USDC.
MAX_UNITS = 100_000
TRANSFER = {
    "type": "function",
    "name": "transfer",
    "stateMutability": "nonpayable",
    "inputs": [{"name": "to", "type": "address"}, {"name": "value", "type": "uint256"}],
    "outputs": [{"name": "", "type": "bool"}],
}
PAYER_PROOF = [
    {"name": "txHash", "type": "bytes32"},
    {"name": "slug", "type": "string"},
    {"name": "requestHash", "type": "bytes32"},
]

payer = Account.from_key(os.environ.get("BUYER_KEY", PLAY_KEY))
manifest = requests.get(f"{GATEWAY}/.well-known/agent-manifest.json", timeout=30).json()
wallet = Web3.to_checksum_address(manifest["identity"]["walletAddress"])
prices = {offer["slug"]: offer["price"] for offer in manifest["availableEndpoints"]}
units = int(Decimal(str(prices[SLUG])) * 10**6)
assert units <= MAX_UNITS, f"{SLUG} costs {prices[SLUG]} USDC"

# 1. Transfer the price, and wait until it is mined.
chain = Web3(Web3.HTTPProvider(RPC))
transfer = chain.eth.contract(USDC, abi=[TRANSFER]).functions.transfer(wallet, units)
nonce = chain.eth.get_transaction_count(payer.address)
transaction = transfer.build_transaction({"from": payer.address, "nonce": nonce})
raw = payer.sign_transaction(transaction).raw_transaction
tx_hash = chain.eth.send_raw_transaction(raw).to_0x_hex()
assert chain.eth.wait_for_transaction_receipt(tx_hash)["status"] == 1

# 2. Sign what the transfer pays for: this request and no other.
# All fields but slug, txHash and payerSignature count.
request = {"prompt": PROMPT, "aspect_ratio": "1:1"}
written = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
domain = {
    "name": "Generation Gateway",
    "version": "1",
    "chainId": chain.eth.chain_id,
    "verifyingContract": wallet,
}
message = {
    "txHash": bytes.fromhex(tx_hash[2:]),
    "slug": SLUG,
    "requestHash": hashlib.sha256(written.encode()).digest(),
}
proof = payer.sign_typed_data(domain, {"PayerProof": PAYER_PROOF}, message)

# 3. Send the request. If the answer is lost, the same body with the same Idempotency-Key may be
# sent again.
body = request | {"slug": SLUG, "txHash": tx_hash, "payerSignature": proof.signature.to_0x_hex()}
key = {"Idempotency-Key": secrets.token_hex(16)}
paid = requests.post(f"{GATEWAY}/api/proxy-generate", json=body, headers=key, timeout=60)
assert paid.ok, paid.text
task = {"done": False}
while not task["done"]:
    task = requests.get(f"{GATEWAY}{paid.json()['statusUrl']}?wait=30", timeout=60).json()
assert task["status"] == "completed", task["error"]
print(task["status"], "paid by", task["payment"]["transaction"])

picture = requests.get(task["result"]["outputs"][0]["url"], timeout=60).content
Path("bought.png").write_bytes(picture)
print("bought.png", len(picture), "bytes")
