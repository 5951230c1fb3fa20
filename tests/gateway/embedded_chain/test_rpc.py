"""JSON-RPC responses like those of a node of Base, through web3.py and through bare HTTP."""

from __future__ import annotations

import json
from urllib.request import Request, urlopen

import pytest
from web3 import AsyncHTTPProvider, AsyncWeb3, Web3
from web3.exceptions import BlockNotFound, TransactionNotFound, Web3RPCError

from gateway_demo import token
from gateway_demo.chain import OTHER_TOKEN

ZERO = "0x" + "00" * 20


def post(chain, body: object) -> object:
    """Send a body unchanged and return the response."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request(chain.rpc_url, raw, {"Content-Type": "application/json"})
    with urlopen(request, timeout=10) as response:
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        text = response.read()
    return json.loads(text) if text else None


def request(method: str, *params: object, request_id: int = 1) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": list(params)}


def error_of(chain, method: str, *params: object) -> dict[str, object]:
    return post(chain, request(method, *params))["error"]


def test_the_chain_says_that_it_is_base(web3):
    assert web3.eth.chain_id == 8453
    assert web3.net.version == "8453"
    assert web3.client_version.startswith("PlayChain")
    assert web3.eth.accounts == []
    assert web3.eth.syncing is False


def test_web3_pays_gas_and_sends_by_itself(chain, web3, payer, wallet):
    fees = web3.eth.fee_history(4, "latest", [50])
    transaction = {
        "from": payer.address,
        "to": wallet,
        "value": 5,
        "nonce": web3.eth.get_transaction_count(payer.address),
        "maxPriorityFeePerGas": web3.eth.max_priority_fee,
        "maxFeePerGas": 2 * fees["baseFeePerGas"][-1] + web3.eth.max_priority_fee,
        "chainId": web3.eth.chain_id,
    }
    transaction["gas"] = web3.eth.estimate_gas(transaction)
    assert transaction["gas"] == 21_000
    sent = web3.eth.send_raw_transaction(payer.sign_transaction(transaction).raw_transaction)
    receipt = web3.eth.wait_for_transaction_receipt(sent, timeout=5, poll_latency=0.01)
    assert (receipt["status"], receipt["type"]) == (1, 2)
    assert web3.eth.get_balance(wallet) == 5
    spent = 10**18 - 5 - receipt["gasUsed"] * receipt["effectiveGasPrice"]
    assert web3.eth.get_balance(payer.address) == spent


def test_a_legacy_transaction_is_taken_too(web3, payer, wallet):
    fields = {"to": wallet, "value": 1, "gas": 21_000, "nonce": 0, "chainId": 8453}
    signed = payer.sign_transaction({**fields, "gasPrice": web3.eth.gas_price})
    sent = web3.eth.send_raw_transaction(signed.raw_transaction)
    found = web3.eth.get_transaction(sent)
    assert (found["type"], found["from"], found["chainId"]) == (0, payer.address, 8453)


async def test_async_web3_works(chain, payer):
    provider = AsyncHTTPProvider(chain.rpc_url)
    web3 = AsyncWeb3(provider)
    try:
        assert await web3.eth.get_balance(payer.address) == 10**18
        assert (await web3.eth.get_block("latest"))["number"] == chain.block.number
    finally:
        await provider.disconnect()


def test_the_estimate_suffices_and_a_hopeless_call_says_why(chain, web3, payer, wallet):
    call = {"from": payer.address, "to": chain.usdc, "data": token.transfer_call(wallet, 7)}
    gas = web3.eth.estimate_gas(call)
    sent = chain.send_transaction(payer.key, chain.usdc, call["data"], gas=gas)
    assert chain.receipt(sent)["status"] == "0x1"
    call["data"] = token.transfer_call(wallet, 10**12)
    refused = error_of(chain, "eth_estimateGas", {**call, "data": "0x" + call["data"].hex()})
    assert refused["code"] == 3
    assert refused["message"].endswith("reverted: ERC20: transfer amount exceeds balance")
    assert refused["data"].startswith("0x08c379a0")


def test_a_caller_without_eth_may_ask(chain, wallet):
    owner = {"to": chain.usdc, "from": wallet, "data": "0x" + token.balance_call(wallet).hex()}
    assert int(post(chain, request("eth_call", owner, "latest"))["result"], 16) == 0


@pytest.mark.parametrize("key", ["blockHash", "blockNumber"])
def test_state_is_read_at_the_block_that_was_asked_for(chain, payer, wallet, key):
    before = chain.block
    chain.transfer_usdc(payer.key, wallet, 5)
    pinned = {"blockHash": "0x" + before.hash.hex(), "blockNumber": hex(before.number)}[key]
    query = token.balance_call(wallet)
    assert int.from_bytes(chain.call(chain.usdc, query, {key: pinned}), "big") == 0
    assert int.from_bytes(chain.call(chain.usdc, query), "big") == 5
    nonces = [
        post(chain, request("eth_getTransactionCount", payer.address, ref))["result"]
        for ref in ({key: pinned}, "latest")
    ]
    assert nonces == ["0x0", "0x1"]


def test_an_unknown_block_is_an_error_for_state_and_null_for_itself(chain, web3):
    nowhere = {"blockHash": "0x" + "ab" * 32}
    refused = error_of(chain, "eth_getBalance", ZERO, nowhere)
    assert refused == {"code": -32000, "message": "header for hash not found"}
    assert error_of(chain, "eth_getBalance", ZERO, "0xffffff")["message"] == "header not found"
    with pytest.raises(BlockNotFound):
        web3.eth.get_block(10**6)
    with pytest.raises(TransactionNotFound):
        web3.eth.get_transaction("0x" + "ab" * 32)


def test_an_orphan_can_be_read_unless_it_must_be_canonical(chain, payer, wallet):
    snapshot = chain.snapshot()
    tx_hash = chain.transfer_usdc(payer.key, wallet, 5)
    orphan = {"blockHash": "0x" + chain.block.hash.hex()}
    chain.revert(snapshot)
    assert chain.receipt(tx_hash) is None
    assert chain.usdc_balance(wallet) == 0
    assert int.from_bytes(chain.call(chain.usdc, token.balance_call(wallet), orphan), "big") == 5
    refused = error_of(chain, "eth_getBalance", ZERO, {**orphan, "requireCanonical": True})
    assert refused["message"] == "hash is not currently canonical"


def test_blocks_are_found_by_number_and_hash_with_whole_transactions(chain, web3, payer, wallet):
    tx_hash = chain.transfer_usdc(payer.key, wallet, 5)
    block = web3.eth.get_block(chain.block.number, full_transactions=True)
    assert web3.eth.get_block(block["hash"], full_transactions=True) == block
    assert [Web3.to_hex(item["hash"]) for item in block["transactions"]] == [tx_hash]
    assert block["parentHash"] == web3.eth.get_block(block["number"] - 1)["hash"]
    (receipt,) = web3.eth.get_block_receipts(block["number"])
    assert receipt["blockHash"] == block["hash"]


def test_code_and_storage_can_be_read(chain, web3, wallet):
    chain.fund(wallet, usdc_units=77)
    assert len(web3.eth.get_code(chain.usdc)) > 1000
    assert web3.eth.get_code(wallet) == b""
    slot = token.balance_slot(wallet)
    assert int.from_bytes(web3.eth.get_storage_at(chain.usdc, slot), "big") == 77


def test_logs_are_filtered_by_address_topics_and_blocks(chain, web3, payer, wallet):
    start = chain.block.number + 1
    tx_hash = chain.transfer_usdc(payer.key, wallet, 5)
    here = chain.block
    chain.mint(payer.address, 9, asset=OTHER_TOKEN)
    everything = {"fromBlock": start, "toBlock": "latest"}
    transfer = Web3.to_hex(Web3.keccak(text="Transfer(address,address,uint256)"))
    sender = "0x" + payer.address[2:].lower().rjust(64, "0")
    to_wallet = "0x" + wallet[2:].lower().rjust(64, "0")

    def count(**query: object) -> int:
        return len(web3.eth.get_logs({**everything, **query}))

    assert count() == 2
    assert count(address=chain.usdc) == 1
    assert count(address=[chain.usdc, OTHER_TOKEN]) == 2
    assert count(topics=[transfer]) == 2
    assert count(topics=[None, None, to_wallet]) == 1
    assert count(topics=[[transfer, sender], None, [to_wallet, sender]]) == 2
    assert count(topics=[transfer, to_wallet]) == 0
    assert count(topics=[None, None, None, None]) == 0
    (log,) = web3.eth.get_logs({"blockHash": here.hash})
    assert Web3.to_hex(log["transactionHash"]) == tx_hash
    assert web3.eth.get_logs({"fromBlock": start + 1000, "toBlock": start + 2000}) == []


def test_logs_of_an_impossible_range_are_refused(chain):
    unknown = {"blockHash": "0x" + "ab" * 32}
    assert error_of(chain, "eth_getLogs", unknown)["message"] == "unknown block"
    both = error_of(chain, "eth_getLogs", {**unknown, "fromBlock": "0x0"})
    assert both["code"] == -32602


def test_a_batch_is_answered_item_by_item(chain):
    batch = [
        request("eth_chainId", request_id=7),
        request("eth_nonsense", request_id=8),
        {"jsonrpc": "2.0", "method": "eth_chainId"},
        5,
    ]
    first, second, third = post(chain, batch)
    assert (first["id"], first["result"]) == (7, "0x2105")
    assert (second["id"], second["error"]["code"]) == (8, -32601)
    assert (third["id"], third["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"null", -32600),
        (request("eth_getBalance"), -32602),
        (request("eth_chainId", 1), -32602),
        (request("eth_getBalance", "0x12", "latest"), -32602),
        (request("eth_getBalance", ZERO, "newest"), -32602),
        (request("eth_call", "0x"), -32602),
        ({**request("eth_chainId"), "params": {"a": 1}}, -32602),
        (request("eth_sendRawTransaction", "0x02c0"), -32000),
        (request("eth_sendRawTransaction", "0x"), -32000),
    ],
)
def test_what_is_no_request_gets_the_right_code(chain, body, code):
    assert post(chain, body)["error"]["code"] == code


def test_a_notification_gets_no_answer(chain):
    assert post(chain, {"jsonrpc": "2.0", "method": "eth_chainId"}) is None


def test_a_web_page_may_call(chain):
    with urlopen(Request(chain.rpc_url, method="OPTIONS"), timeout=10) as response:
        assert response.status == 204
        assert "POST" in response.headers["Access-Control-Allow-Methods"]


@pytest.mark.parametrize("chain_id", [1, 84532])
def test_a_transaction_for_another_chain_is_refused(web3, payer, wallet, chain_id):
    fields = {"to": wallet, "value": 1, "gas": 21_000, "nonce": 0, "chainId": chain_id}
    fees = {"maxFeePerGas": 10**9, "maxPriorityFeePerGas": 1}
    for price in (fees, {"gasPrice": 10**9}):
        signed = payer.sign_transaction({**fields, **price})
        with pytest.raises(Web3RPCError, match=f"invalid chain id.*have {chain_id} want 8453"):
            web3.eth.send_raw_transaction(signed.raw_transaction)
