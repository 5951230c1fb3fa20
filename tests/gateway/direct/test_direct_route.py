"""POST /api/proxy-generate: which transfers are payments, and that each transaction pays once."""

import asyncio
import base64
import hashlib

import attrs
import pytest
from eth_account import Account

from gateway_demo.chain import FAUCET_KEY, MULTICALL, OTHER_TOKEN
from gateway_demo.token import call_data, transfer_call
from tests.authorizations import header_of, multicall, payload_of
from tests.conftest import WALLET, Payer, nothing_charged, running

URL = "/api/proxy-generate"
STRANGER = "0x" + "9" * 40
HASH = "0x" + "ab" * 32
FILE = {"fileBase64": base64.b64encode(b"hello").decode(), "fileName": "a.txt"}


async def claim(gateway, tx_hash, *, headers=None, **changes):
    body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash} | changes
    body = {name: value for name, value in body.items() if value is not None}
    return await gateway.client.post(URL, json=body, headers=headers or {})


async def code(gateway, tx_hash, **changes) -> str:
    """Submit a transaction that must be refused; return the code."""
    answer = await claim(gateway, tx_hash, **changes)
    body = await answer.get_json()
    assert answer.status_code == 400, body
    assert isinstance(body["error"], str)
    assert set(body) <= {"error", "code", "details"}
    return body["code"]


async def test_a_transfer_starts_a_task(gateway, payer):
    answer = await claim(gateway, payer.transfer(20_000))
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    body = await answer.get_json()
    assert set(body) == {"success", "taskId", "statusUrl", "paidAmount", "message"}
    assert body["success"] is True
    assert body["paidAmount"] == 0.02
    assert body["statusUrl"] == f"/api/task/{body['taskId']}"
    assert (await gateway.wait(body["taskId"]))["status"] == "completed"


async def test_paid_amount_is_what_the_transfer_moved(gateway, payer):
    answer = await claim(gateway, payer.transfer(1_234_567))
    assert (await answer.get_json())["paidAmount"] == 1.234567


# -- not a payment


async def test_an_unknown_transaction_is_not_found(gateway, chain):
    async with nothing_charged(gateway, chain):
        assert await code(gateway, HASH) == "TX_NOT_FOUND"


async def test_a_transaction_that_waits_is_not_found_until_it_is_mined(gateway, payer, chain):
    chain.set_automine(False)
    tx_hash = payer.transfer(20_000)
    assert await code(gateway, tx_hash) == "TX_NOT_FOUND"
    chain.mine()
    assert (await claim(gateway, tx_hash)).status_code == 200


async def test_a_transaction_mined_while_we_look_pays(gateway, payer, chain):
    chain.set_automine(False)
    looking = asyncio.create_task(claim(gateway, payer.transfer(20_000)))
    await asyncio.sleep(0.2)
    chain.mine()
    assert (await looking).status_code == 200


async def test_a_reverted_transaction_failed(gateway, payer):
    assert await code(gateway, payer.transfer(10**12)) == "TX_FAILED"


async def test_a_transfer_to_somebody_else_is_no_payment(gateway, payer):
    assert await code(gateway, payer.transfer(20_000, to=STRANGER)) == "INVALID_PAYMENT"


async def test_another_token_is_no_payment(gateway, payer, chain):
    chain.mint(payer.account.address, 20_000, asset=OTHER_TOKEN)
    tx_hash = chain.transfer_usdc(payer.account.key, WALLET, 20_000, asset=OTHER_TOKEN)
    assert await code(gateway, tx_hash) == "INVALID_PAYMENT"


async def test_another_token_beside_a_small_transfer_does_not_help(gateway, payer, chain):
    for asset in (chain.usdc, OTHER_TOKEN):
        chain.mint(MULTICALL, 50_000, asset=asset)
    calls = (chain.usdc, transfer_call(WALLET, 1)), (OTHER_TOKEN, transfer_call(WALLET, 20_000))
    tx_hash = chain.send_transaction(payer.account.key, MULTICALL, multicall(*calls))
    assert await code(gateway, tx_hash) == "INSUFFICIENT_PAYMENT"


async def test_money_that_only_leaves_the_wallet_is_no_payment(settings, provider, chain, payer):
    wallet = Account.create()
    chain.fund(wallet.address)
    async with running(attrs.evolve(settings, wallet=wallet.address), provider) as gateway:
        await gateway.services.payments.cutoff_block()
        for to in (wallet.address, STRANGER):
            tx_hash = chain.transfer_usdc(wallet.key, to, 20_000)
            assert await code(gateway, tx_hash) == "INVALID_PAYMENT"


@pytest.mark.parametrize("send", ["ether", "approval"])
async def test_a_transaction_without_transfer_is_no_payment(gateway, payer, chain, send):
    to, data = (WALLET, b"") if send == "ether" else (chain.usdc, approval(WALLET))
    value = 10**15 if send == "ether" else 0
    tx_hash = chain.send_transaction(payer.account.key, to, data, value)
    assert await code(gateway, tx_hash) == "INVALID_PAYMENT"


async def test_a_transfer_of_nothing_is_no_payment(gateway, payer):
    assert await code(gateway, payer.transfer(0)) == "INVALID_PAYMENT"


async def test_a_transfer_below_the_price_is_insufficient_and_not_used_up(gateway, payer):
    tx_hash = payer.transfer(19_999)
    assert await code(gateway, tx_hash) == "INSUFFICIENT_PAYMENT"
    answer = await claim(gateway, tx_hash, slug="paper", prompt=None, **FILE)  # costs 0.01
    assert (answer.status_code, (await answer.get_json())["paidAmount"]) == (200, 0.019999)


def approval(spender: str) -> bytes:
    return call_data("approve", ["address", "uint256"], spender, 10**9)


def batch(chain, payer, *units: int) -> str:
    """Pay several transfers in one transaction, through a contract."""
    chain.send_transaction(payer.account.key, chain.usdc, approval(MULTICALL))
    types = ["address", "address", "uint256"]
    calls = [
        (chain.usdc, call_data("transferFrom", types, payer.account.address, WALLET, amount))
        for amount in units
    ]
    return chain.send_transaction(payer.account.key, MULTICALL, multicall(*calls))


async def test_small_transfers_do_not_add_up(gateway, payer, chain):
    tx_hash = batch(chain, payer, 10_000, 15_000)
    assert await code(gateway, tx_hash) == "INSUFFICIENT_PAYMENT"


async def test_a_transfer_through_a_contract_pays_once_even_beside_another(gateway, payer, chain):
    tx_hash = batch(chain, payer, 5_000, 30_000, 40_000)
    answer = await claim(gateway, tx_hash)
    assert (await answer.get_json())["paidAmount"] == 0.03
    assert await code(gateway, tx_hash) == "TX_ALREADY_USED"


# -- one transaction, one generation


async def test_a_transaction_pays_once_for_whatever_request(gateway, payer, chain):
    tx_hash = payer.transfer(60_000)
    assert (await claim(gateway, tx_hash)).status_code == 200
    async with nothing_charged(gateway, chain):
        assert await code(gateway, tx_hash) == "TX_ALREADY_USED"
        assert await code(gateway, tx_hash, prompt="another") == "TX_ALREADY_USED"
        assert await code(gateway, tx_hash, slug="paper", **FILE) == "TX_ALREADY_USED"


async def test_capitals_in_a_hash_change_nothing(gateway, payer):
    tx_hash = payer.transfer(20_000)
    capitals = "0x" + tx_hash[2:].upper()
    assert (await claim(gateway, capitals)).status_code == 200
    assert await code(gateway, tx_hash) == "TX_ALREADY_USED"


async def test_of_five_at_once_one_is_paid(gateway, payer):
    tx_hash = payer.transfer(20_000)
    answers = await asyncio.gather(*(claim(gateway, tx_hash) for _ in range(5)))
    codes = [(await answer.get_json()).get("code") for answer in answers]
    assert sorted(codes, key=str) == [None] + ["TX_ALREADY_USED"] * 4
    assert (await gateway.services.store.counts())["payments"] == {"settled": 1}


async def test_an_x402_settlement_does_not_pay_again(gateway, payer, chain):
    answer = await gateway.client.post(
        "/api/x402/picture", json={"prompt": "a"}, headers={"X-PAYMENT": payer.header()}
    )
    task = await gateway.wait((await answer.get_json())["taskId"])
    async with nothing_charged(gateway, chain):
        assert await code(gateway, task["payment"]["transaction"]) == "TX_ALREADY_USED"


async def test_an_authorization_spent_in_the_direct_flow_does_not_pay_by_x402(
    gateway, payer, chain
):
    signed = payer.authorization()
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    tx_hash = chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    assert (await claim(gateway, tx_hash)).status_code == 200
    header = header_of(payload_of(signed, signature))
    async with nothing_charged(gateway, chain):
        for prompt in ("a boat", "another"):
            answer = await gateway.client.post(
                "/api/x402/picture", json={"prompt": prompt}, headers={"X-PAYMENT": header}
            )
            assert answer.status_code == 402


async def test_of_two_authorizations_in_one_transaction_each_pays_its_own_flow(gateway, chain):
    payers = Payer(chain), Payer(chain)
    signed = [payer.authorization() for payer in payers]
    signatures = [
        one.sign(payer.account.key, chain.chain_id, chain.usdc)
        for one, payer in zip(signed, payers, strict=True)
    ]
    calls = [(chain.usdc, one.call(by)) for one, by in zip(signed, signatures, strict=True)]
    tx_hash = chain.send_transaction(FAUCET_KEY, MULTICALL, multicall(*calls))
    by_header = await gateway.client.post(
        "/api/x402/picture",
        json={"prompt": "a"},
        headers={"X-PAYMENT": header_of(payload_of(signed[0], signatures[0]))},
    )
    assert by_header.status_code == 200
    assert (await claim(gateway, tx_hash)).status_code == 200  # the second transfer
    assert await code(gateway, tx_hash) == "TX_ALREADY_USED"
    late = await gateway.client.post(
        "/api/x402/picture",
        json={"prompt": "a"},
        headers={"X-PAYMENT": header_of(payload_of(signed[1], signatures[1]))},
    )
    assert late.status_code == 402
    assert (await gateway.services.store.counts())["payments"] == {"settled": 2}


async def test_a_transaction_stays_used_after_a_restart(settings, provider, payer):
    async with running(settings, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        tx_hash = payer.transfer(20_000)
        assert (await claim(gateway, tx_hash)).status_code == 200
    async with running(settings, provider) as gateway:
        assert await code(gateway, tx_hash) == "TX_ALREADY_USED"


# -- age


async def test_a_transfer_from_before_the_database_is_no_payment(
    settings, provider, payer, chain, clock
):
    tx_hash = payer.transfer(20_000)
    # The transfer is in the next block: without this, the block may be younger than the database.
    chain.advance(1)
    clock.offset_s = 1
    async with running(settings, provider, now=clock) as gateway:
        assert await code(gateway, tx_hash) == "INVALID_PAYMENT"


@pytest.mark.parametrize(("hours", "pays"), [(23.9, True), (24.1, False)])
async def test_a_transfer_pays_for_24_hours(gateway, payer, chain, clock, hours, pays):
    tx_hash = payer.transfer(20_000)
    chain.advance(hours * 3600)
    clock.offset_s = hours * 3600
    answer = await claim(gateway, tx_hash)
    assert answer.status_code == (200 if pays else 400)
    assert (await answer.get_json()).get("code") == (None if pays else "INVALID_PAYMENT")


async def test_a_transfer_pays_once_it_is_deep_enough(settings, provider, payer, chain):
    patient = attrs.evolve(settings, confirmations=5, tx_patience=0.5)
    async with running(patient, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        tx_hash = payer.transfer(20_000)
        # By default the chain makes five blocks a second.
        chain.set_automine(False)
        chain.mine(2)
        assert await code(gateway, tx_hash) == "TX_NOT_FOUND"
        chain.mine(2)
        assert (await claim(gateway, tx_hash)).status_code == 200


# -- a lost response


async def test_an_idempotency_key_gives_the_lost_answer_again(gateway, payer, chain, provider):
    tx_hash, headers = payer.transfer(20_000), {"Idempotency-Key": "k" * 255}
    first = await (await claim(gateway, tx_hash, headers=headers)).get_json()
    await gateway.wait(first["taskId"])
    async with nothing_charged(gateway, chain):
        again = await claim(gateway, tx_hash, headers=headers)
        assert (again.status_code, await again.get_json()) == (200, first)
        assert await code(gateway, tx_hash) == "TX_ALREADY_USED"  # without the key
        other_key = await claim(gateway, tx_hash, headers={"Idempotency-Key": "other"})
        assert (await other_key.get_json())["code"] == "TX_ALREADY_USED"
    assert len(provider.requests) == 1


async def test_an_idempotency_key_is_for_one_request(gateway, payer, chain):
    tx_hash, headers = payer.transfer(20_000), {"Idempotency-Key": "key"}
    await claim(gateway, tx_hash, headers=headers)
    second = payer.transfer(20_000)
    async with nothing_charged(gateway, chain):
        for changes in ({"prompt": "another"}, {"txHash": second}, {"slug": "paper", **FILE}):
            answer = await claim(gateway, tx_hash, headers=headers, **changes)
            assert answer.status_code == 409
            assert (await answer.get_json())["code"] == "IDEMPOTENCY_CONFLICT"
    assert (await claim(gateway, second)).status_code == 200


async def test_an_idempotency_key_belongs_to_the_sender_of_the_transfer(gateway, payer, chain):
    headers, other = {"Idempotency-Key": "order-1"}, Payer(chain)
    first = await (await claim(gateway, payer.transfer(20_000), headers=headers)).get_json()
    bought = await claim(gateway, other.transfer(20_000), headers=headers, prompt="a house")
    assert bought.status_code == 200
    assert (await bought.get_json())["taskId"] != first["taskId"]


async def test_only_a_transfer_of_the_key_s_owner_meets_the_key(gateway, payer, chain):
    """A client without that owner's transfer cannot find out which keys exist."""
    await claim(gateway, payer.transfer(20_000), headers={"Idempotency-Key": "order-1"})
    used = Payer(chain).transfer(20_000)
    await claim(gateway, used)
    async with nothing_charged(gateway, chain):
        for tx_hash in (HASH, used):
            taken, free = [
                await claim(gateway, tx_hash, headers={"Idempotency-Key": key})
                for key in ("order-1", "order-2")
            ]
            assert taken.status_code == free.status_code == 400
            assert await taken.get_data() == await free.get_data()


async def test_the_keys_of_both_flows_are_apart(gateway, payer):
    headers = {"Idempotency-Key": "order-1"}
    direct = await claim(gateway, payer.transfer(20_000), headers=headers)
    signed = await gateway.client.post(
        "/api/x402/picture",
        json={"prompt": "a boat"},
        headers=headers | {"X-PAYMENT": payer.header()},
    )
    assert direct.status_code == signed.status_code == 200


async def test_a_key_from_before_it_belonged_to_the_sender_gives_its_task_again(gateway, payer):
    tx_hash, headers = payer.transfer(20_000), {"Idempotency-Key": "order-1"}
    first = await (await claim(gateway, tx_hash, headers=headers)).get_json()
    old = hashlib.sha256(b"order-1").hexdigest()
    await gateway.services.store.write(
        lambda db: db.execute("UPDATE payments SET idempotency_hash = ?", (old,)).rowcount
    )
    again = await claim(gateway, tx_hash, headers=headers)
    assert (again.status_code, await again.get_json()) == (200, first)
    assert await code(gateway, tx_hash, headers={"Idempotency-Key": "order-2"}) == "TX_ALREADY_USED"


async def test_a_key_of_five_requests_at_once_gives_one_task(gateway, payer):
    tx_hash, headers = payer.transfer(20_000), {"Idempotency-Key": "key"}
    answers = await asyncio.gather(*(claim(gateway, tx_hash, headers=headers) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({(await answer.get_json())["taskId"] for answer in answers}) == 1


async def test_a_refused_request_does_not_use_up_its_key(gateway, payer):
    headers = {"Idempotency-Key": "key"}
    assert (await claim(gateway, HASH, headers=headers)).status_code == 400
    assert (await claim(gateway, payer.transfer(20_000), headers=headers)).status_code == 200


async def test_an_idempotency_key_may_not_be_endless(gateway):
    answer = await claim(gateway, HASH, headers={"Idempotency-Key": "k" * 256})
    assert (await answer.get_json())["code"] == "VALIDATION_ERROR"
