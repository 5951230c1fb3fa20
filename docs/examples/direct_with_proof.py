"""Buy a picture by a plain USDC transfer, and prove who sent it: pip install web3.

Without variables the script buys from a running `gateway demo` with its play money.
"""

import argparse
import hashlib
import json
import os
import secrets
import sys
import time
from decimal import Decimal
from pathlib import Path

import requests
from eth_account import Account
from web3 import Web3

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("prompt", nargs="?", default="a lighthouse above a stormy sea at night")
PROMPT = parser.parse_args().prompt
GATEWAY = os.environ.get("GATEWAY", "http://127.0.0.1:8402")
RPC = os.environ.get("RPC", "http://127.0.0.1:8545")
BASE = ("base", "Base", 8453, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")
# The demo's chain has the name, the chain id and the USDC address of Base Sepolia.
DEMO = ("base-sepolia", "Base Sepolia", 84532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e")
NETWORK, CHAIN, CHAIN_ID, USDC = BASE if "BUYER_KEY" in os.environ else DEMO
# The demo funds this key, which is public: never send real money to it.
PLAY_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
SLUG = "sandbox-image"
# The limit per purchase, in units of a millionth USDC.
MAX_UNITS = 100_000
# How often the paid request is sent, and the seconds between.
ATTEMPTS, PAUSE_S = 10, 3
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


def send(body, key):
    """Return the response to the paid request, with retries while it may still succeed."""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_S)
        try:
            answer = requests.post(
                f"{GATEWAY}/api/proxy-generate",
                json=body,
                headers={"Idempotency-Key": key},
                timeout=60,
            )
        except requests.RequestException as error:
            failure = str(error)
            continue
        if answer.ok:
            return answer.json()
        failure = f"{answer.status_code} {answer.text}"
        # The gateway's RPC endpoint may see the transfer later than ours.
        is_late = "TX_NOT_FOUND" in failure or answer.status_code == 429
        if not is_late and answer.status_code < 500:
            break
    again = f"IDEMPOTENCY_KEY={key} TX_HASH={body['txHash']}"
    sys.exit(f"{failure}\nThe transfer is made. To continue, run this again with {again}")


payer = Account.from_key(os.environ.get("BUYER_KEY", PLAY_KEY))
manifest = requests.get(f"{GATEWAY}/.well-known/agent-manifest.json", timeout=30).json()
network = manifest["identity"]["network"]
if network != NETWORK:
    sys.exit(f"The gateway sells on {network}, but this script pays on {NETWORK} only.")
chain = Web3(Web3.HTTPProvider(RPC))
if chain.eth.chain_id != CHAIN_ID:
    sys.exit(
        f"RPC is an endpoint of chain {chain.eth.chain_id}, but {CHAIN} ({CHAIN_ID}) is needed."
    )
wallet = Web3.to_checksum_address(manifest["identity"]["walletAddress"])
prices = {offer["slug"]: offer["price"] for offer in manifest["availableEndpoints"]}
units = int(Decimal(str(prices[SLUG])) * 10**6)
if units > MAX_UNITS:
    sys.exit(f"{SLUG} costs {prices[SLUG]} USDC, which is more than the limit.")

# 1. Transfer the price, and wait until it is mined. Running this again with both variables and the
# same prompt continues with the same transfer.
key = os.environ.get("IDEMPOTENCY_KEY") or secrets.token_hex(16)
tx_hash = os.environ.get("TX_HASH")
if not tx_hash:
    transfer = chain.eth.contract(USDC, abi=[TRANSFER]).functions.transfer(wallet, units)
    nonce = chain.eth.get_transaction_count(payer.address)
    transaction = transfer.build_transaction({"from": payer.address, "nonce": nonce})
    signed = payer.sign_transaction(transaction)
    tx_hash = signed.hash.to_0x_hex()
    print(f"IDEMPOTENCY_KEY={key} TX_HASH={tx_hash}", flush=True)
    chain.eth.send_raw_transaction(signed.raw_transaction)
if chain.eth.wait_for_transaction_receipt(tx_hash)["status"] != 1:
    sys.exit(f"The transfer {tx_hash} failed: nothing was paid.")

# 2. Sign the request that the transfer pays for: all fields except slug, txHash, payerSignature.
request = {"prompt": PROMPT, "aspect_ratio": "1:1"}
written = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
domain = {
    "name": "Generation Gateway",
    "version": "1",
    "chainId": CHAIN_ID,
    "verifyingContract": wallet,
}
message = {
    "txHash": bytes.fromhex(tx_hash[2:]),
    "slug": SLUG,
    "requestHash": hashlib.sha256(written.encode()).digest(),
}
proof = payer.sign_typed_data(domain, {"PayerProof": PAYER_PROOF}, message)

# 3. Send the request. The same body with the same Idempotency-Key may be sent again.
body = request | {"slug": SLUG, "txHash": tx_hash, "payerSignature": proof.signature.to_0x_hex()}
status_url = f"{GATEWAY}{send(body, key)['statusUrl']}"
task = {"done": False}
while not task["done"]:
    task = requests.get(f"{status_url}?wait=30", timeout=60).json()
if task["status"] != "completed":
    sys.exit(f"{task['error']} ({task['details']}), refund: {task['refund']}")
print(task["status"], "paid by", task["payment"]["transaction"])

picture = requests.get(task["result"]["outputs"][0]["url"], timeout=60).content
Path("bought.png").write_bytes(picture)
print("bought.png", len(picture), "bytes")
