"""Purchases with a smart wallet over HTTP, and events that must not happen during them."""

import asyncio

from eth_utils.address import to_canonical_address
from eth_utils.crypto import keccak

from gateway_demo.chain import FAUCET_KEY
from tests.conftest import WALLET, buy, nothing_charged
from tests.proof.wallets.accounts import HEADER

SIGNATURE = "invalid_exact_evm_payload_signature"
SPENT = "invalid_exact_evm_nonce_already_used"
PATIENCE_S = 60


async def bought(gateway, header: str, version: int = 1, **fields) -> str:
    """Return the task bought with a payment header."""
    answer = await buy(gateway, header, name=HEADER[version], **fields)
    body = await answer.get_json()
    assert answer.status_code == 200, body
    return body["taskId"]


async def refused(gateway, chain, header: str, version: int = 1) -> str:
    """Return the reason of a 402, and check that nothing is stored, sent or paid."""
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, header, name=HEADER[version])
        body = await answer.get_json()
        assert answer.status_code == 402, body
    return body["error"]


async def is_completed(gateway, chain, task_id: str, units: int = 20_000) -> None:
    task = await gateway.wait(task_id)
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert chain.usdc_balance(WALLET) == units


def newest_settlement(chain):
    """Return the only transaction of the newest block that has any."""
    with chain.node.lock:
        blocks = chain.node.between(0, chain.node.head.number)
    (executed,) = next(block.executed for block in reversed(blocks) if block.executed)
    return executed.transaction


async def until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not (found := condition()):  # noqa: ASYNC110 - the chain tells nobody
            await asyncio.sleep(0.02)
    return found


def submit(chain, signed, signature: bytes) -> None:
    """Submit an authorization as a third party would."""
    tx_hash = chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    assert chain.receipt(tx_hash)["status"] == "0x1"


def spend(chain, signed) -> None:
    """Mark a nonce used in the token's storage, without its account."""
    account = to_canonical_address(signed.sender).rjust(32, b"\0")
    slot = keccak(keccak((2).to_bytes(32, "big") + account) + signed.nonce)  # authorizationState
    token, place = to_canonical_address(chain.usdc), int.from_bytes(slot, "big")
    with chain.node.lock:
        chain.node.mine(lambda state: state.set_storage(token, place, 1))
