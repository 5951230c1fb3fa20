"""POST /api/x402/{slug} paid by accounts with code: the account itself decides who may sign."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import attrs
import pytest
from eth_account import Account

from gateway.chain.smart_wallets import WALLET_GAS
from gateway_demo.chain import FAUCET_KEY
from gateway_demo.token import call_data
from tests.authorizations import header_of, payload_of
from tests.conftest import buy, nothing_charged, running
from tests.proof.wallets import accounts
from tests.proof.wallets.accounts import MAGIC, answering, hostile, reverting, yes_after
from tests.proof.wallets.buying import (
    SIGNATURE,
    SPENT,
    bought,
    is_completed,
    newest_settlement,
    refused,
    spend,
)

FAUCET = Account.from_key(FAUCET_KEY).address
VERSIONS = pytest.mark.parametrize("version", [1, 2])


@VERSIONS
async def test_a_smart_account_buys_with_its_owners_signature(gateway, chain, smart, version):
    header = smart.header(version=version)
    task_id = await bought(gateway, header, version)
    await is_completed(gateway, chain, task_id)
    assert chain.usdc_balance(smart.address) == 100_000_000 - 20_000


@VERSIONS
async def test_the_same_header_again_is_the_same_task(gateway, chain, smart, version):
    header = smart.header(version=version)
    task_id = await bought(gateway, header, version)
    assert await bought(gateway, header, version) == task_id
    await is_completed(gateway, chain, task_id)


async def test_the_same_nonce_with_another_signature_is_spent(gateway, chain, smart):
    payload = payload_of(signed := smart.authorization(), smart.sign(signed))
    await bought(gateway, header_of(payload))
    payload["payload"]["signature"] += "00"
    assert await refused(gateway, chain, header_of(payload)) == SPENT


@VERSIONS
async def test_only_the_owner_signs_for_a_smart_account(gateway, chain, smart, version):
    stranger = attrs.evolve(smart, owner=Account.create())
    assert await refused(gateway, chain, stranger.header(version=version), version) == SIGNATURE


SIGNATURES = {
    "empty": b"",
    "one byte": b"\1",
    "65 bytes": b"\1" * 65,
    "66 bytes": b"\1" * 66,
    "longer than the token takes": b"\1" * 2_000,
    "only the magic of ERC-6492": accounts.WRAPPED,
    "the magic of ERC-6492 and zeros": bytes(320) + accounts.WRAPPED,
}


@pytest.mark.parametrize("signature", SIGNATURES.values(), ids=SIGNATURES)
async def test_a_signature_of_any_length_is_the_accounts_to_judge(gateway, chain, smart, signature):
    header = smart.header(wrap=lambda _: signature)
    assert await refused(gateway, chain, header) == SIGNATURE


@pytest.mark.parametrize("length", [0, 1, 64, 65, 66, 96, 700])
async def test_an_account_may_accept_a_signature_of_any_length(gateway, chain, length):
    """65 bytes are passed as v, r and s, whatever they mean; any others as `bytes`."""
    payer = hostile(chain, answering(MAGIC))
    task_id = await bought(gateway, payer.header(wrap=lambda _: b"\7" * length))
    await is_completed(gateway, chain, task_id)


@pytest.mark.parametrize(("last", "status"), [(42, 200), (43, 402)])
async def test_a_longer_signature_reaches_the_account_byte_by_byte(gateway, chain, last, status):
    """This account reverts unless byte 70 of the signature is 42."""
    reads_it = "60a93560f81c602a1460115760006000fd5b"  # 4 + 3 words + 69 = 169 (a9)
    payer = hostile(chain, yes_after(reads_it))
    header = payer.header(wrap=lambda _: bytes(69) + bytes([last]))
    assert (await buy(gateway, header)).status_code == status


NOES = {
    "nothing": answering(b""),
    "31 bytes": answering(MAGIC[:31]),
    "zero": answering(bytes(32)),
    "one": answering(bytes(31) + b"\1"),
    "the magic on the right": answering(MAGIC[:4].rjust(32, b"\0")),
    "another magic": answering(b"\xff\xff\xff\xff".ljust(32, b"\0")),
    "a revert": reverting(b""),
    "a revert with the magic": reverting(MAGIC),
    "a revert with words": reverting(call_data("Error", ["string"], "not today")),
    "an invalid instruction": b"\xfe",
    "no jump destination": bytes.fromhex("600356"),
    "a write": yes_after("60016000 55"),
    "all gas used": accounts.BURNS_ALL,
    "nearly all gas used": accounts.BURNS_NEARLY_ALL,
}


@pytest.mark.parametrize("runtime", NOES.values(), ids=NOES)
async def test_an_account_that_does_not_say_yes_does_not_pay(gateway, chain, runtime):
    payer = hostile(chain, runtime)
    assert await refused(gateway, chain, payer.header()) == SIGNATURE


async def test_the_gas_of_a_smart_account_is_capped(gateway, chain, smart):
    task_id = await bought(gateway, smart.header())
    await is_completed(gateway, chain, task_id)
    assert newest_settlement(chain).gas == WALLET_GAS == 400_000


async def test_a_smart_account_without_money_is_told_so(gateway, chain, smart):
    execute = ["address", "uint256", "bytes"]
    rest = chain.usdc_balance(smart.address) - 19_999
    transfer = call_data("transfer", ["address", "uint256"], FAUCET, rest)
    chain.fund(smart.owner.address)
    data = call_data("execute", execute, chain.usdc, 0, transfer)
    chain.send_transaction(smart.owner.key, smart.address, data)
    reason = await refused(gateway, chain, smart.header())
    assert reason == "invalid_exact_evm_insufficient_balance"


async def test_a_key_that_cannot_pay_for_a_smart_accounts_gas_says_so_before(
    settings, provider, chain, smart, payer
):
    """A plain payer's settlement costs less, and is still sold."""
    key = Account.create()
    base_fee = 5_000_000
    chain.fund(key.address, eth_wei=5 * 200_000 * (2 * base_fee + 10**6), usdc_units=0)
    poor = attrs.evolve(settings, settlement_key=key.key.hex())
    async with running(poor, provider) as gateway:
        async with nothing_charged(gateway, chain):
            answer = await buy(gateway, smart.header())
            assert answer.status_code == 500
            assert "nothing was charged" in (await answer.get_json())["error"]
        await bought(gateway, payer.header())


# -- reads elsewhere (EIP-3668)


@pytest.fixture
def outside():
    """A server to which code on the chain points; it counts requests."""
    visits = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            visits.append(self.path)
            body = json.dumps({"data": "0x" + MAGIC.hex()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the base class names it

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.visits = visits
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("is_spent", [False, True])
async def test_an_account_that_wants_a_read_elsewhere_is_refused_and_nobody_reads(
    gateway, chain, outside, smart, is_spent
):
    url = f"http://127.0.0.1:{outside.server_port}/{{sender}}/{{data}}.json"
    types = ["address", "string[]", "bytes", "bytes4", "bytes"]
    lookup = call_data("OffchainLookup", types, smart.address, [url], b"", MAGIC[:4], b"")
    payer = hostile(chain, reverting(lookup))
    signed = payer.authorization()
    if is_spent:  # then the account is asked directly, not by the token
        spend(chain, signed)
    header = header_of(payload_of(signed, b"\1" * 65))
    assert await refused(gateway, chain, header) == (SPENT if is_spent else SIGNATURE)
    assert outside.visits == []
