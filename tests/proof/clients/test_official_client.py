"""The official x402 clients, and a handwritten one, buy over a real socket."""

import asyncio
import json

import httpx
import pytest
from eth_account import Account
from x402 import x402Client, x402ClientSync
from x402.http import x402HTTPClientSync
from x402.http.clients.httpx import x402HttpxClient
from x402.http.clients.requests import x402_requests
from x402.http.utils import decode_payment_response_header
from x402.mechanisms.evm.exact import register_exact_evm_client

from tests.authorizations import decoded, header_of, payload_of
from tests.conftest import PNG, WALLET

BODY = {"prompt": "a boat"}
on_both_servers = pytest.mark.parametrize("http_server", ["hypercorn", "uvicorn"])


async def collect(site, answer) -> dict:
    """Poll a task until it is done and fetch its output; returns the task."""
    assert answer["success"] is True
    async with httpx.AsyncClient() as client:
        task = (await client.get(f"{site.url}{answer['statusUrl']}?wait=20", timeout=25)).json()
        assert task["status"] == "completed"
        assert (await client.get(task["result"]["outputs"][0]["url"])).content == PNG
    return task


def _check_receipt(header: str, network: str, payer, task) -> None:
    receipt = decode_payment_response_header(header)
    assert receipt.success
    assert receipt.network == network
    assert receipt.payer == payer.account.address
    assert receipt.transaction == task["payment"]["transaction"]


@on_both_servers
async def test_the_httpx_client_buys(site, payer, chain):
    official = register_exact_evm_client(x402Client(), payer.account)
    async with x402HttpxClient(official, timeout=20) as client:
        answer = await client.post(f"{site.url}/api/x402/picture", json=BODY)
    assert answer.status_code == 200, answer.text
    task = await collect(site, answer.json())
    _check_receipt(answer.headers["PAYMENT-RESPONSE"], "eip155:8453", payer, task)
    assert chain.usdc_balance(WALLET) == 20_000


async def test_the_requests_client_buys(site, payer, chain):
    official = register_exact_evm_client(x402ClientSync(), payer.account)

    def buy():
        with x402_requests(official) as client:
            answer = client.post(f"{site.url}/api/x402/picture", json=BODY, timeout=20)
            return answer.status_code, answer.json(), answer.headers

    status, body, headers = await asyncio.to_thread(buy)
    assert status == 200, body
    task = await collect(site, body)
    _check_receipt(headers["PAYMENT-RESPONSE"], "eip155:8453", payer, task)
    assert chain.usdc_balance(WALLET) == 20_000


async def test_a_document_is_bought_by_the_httpx_client(site, payer, chain):
    official = register_exact_evm_client(x402Client(), payer.account)
    body = {"fileBase64": "aGk=", "fileName": "a.txt"}
    async with x402HttpxClient(official, timeout=20) as client:
        answer = await client.post(f"{site.url}/api/x402/paper", json=body)
    assert answer.status_code == 200, answer.text
    assert chain.usdc_balance(WALLET) == 10_000


async def test_a_client_without_money_pays_nothing_and_hears_why(site, chain):
    official = register_exact_evm_client(x402Client(), Account.create())
    async with x402HttpxClient(official, timeout=20) as client:
        answer = await client.post(f"{site.url}/api/x402/picture", json=BODY)
    assert answer.status_code == 402
    assert answer.json()["error"] == "invalid_exact_evm_insufficient_balance"
    assert chain.usdc_balance(WALLET) == 0


async def test_the_official_version_1_scheme_pays_from_the_body(site, payer, chain):
    """A version 1 client does not know the header `PAYMENT-REQUIRED`."""
    official = register_exact_evm_client(x402ClientSync(), payer.account)
    protocol = x402HTTPClientSync(official)
    url = f"{site.url}/api/x402/picture?x402Version=1"
    async with httpx.AsyncClient(timeout=20) as client:
        challenge = await client.post(url, json=BODY)
        required = protocol.get_payment_required_response(lambda _: None, challenge.json())
        signed = await asyncio.to_thread(official.create_payment_payload, required)
        headers = protocol.encode_payment_signature_header(signed)
        assert set(headers) == {"X-PAYMENT"}
        answer = await client.post(url, json=BODY, headers=headers)
    assert answer.status_code == 200, answer.text
    task = await collect(site, answer.json())
    _check_receipt(answer.headers["X-PAYMENT-RESPONSE"], "base", payer, task)
    assert chain.usdc_balance(WALLET) == 20_000


async def test_a_version_1_client_written_by_hand_buys(site, payer, chain):
    url = f"{site.url}/api/x402/picture?x402Version=1"
    async with httpx.AsyncClient(timeout=20) as client:
        terms = (await client.post(url, json=BODY)).json()["accepts"][0]
        signed = payer.authorization(int(terms["maxAmountRequired"]), to=terms["payTo"])
        signature = signed.sign(payer.account.key, 8453, terms["asset"])
        headers = {"X-PAYMENT": header_of(payload_of(signed, signature))}
        answer = await client.post(url, json=BODY, headers=headers)
        again = await client.post(url, json=BODY, headers=headers)
    assert answer.status_code == 200, answer.text
    assert again.json() == answer.json()
    await collect(site, answer.json())
    assert decoded(answer.headers["X-PAYMENT-RESPONSE"])["success"] is True
    assert chain.usdc_balance(WALLET) == 20_000


# -- behaviour of real sockets


@on_both_servers
async def test_a_large_payment_header_and_a_body_in_pieces_arrive(site, payer):
    header = header_of(payer.payload() | {"padding": "x" * 7_000})

    async def pieces():
        for byte in json.dumps(BODY):
            yield byte.encode()

    async with httpx.AsyncClient(timeout=20) as client:
        headers = {"X-PAYMENT": header, "Content-Type": "application/json"}
        answer = await client.post(
            f"{site.url}/api/x402/picture", content=pieces(), headers=headers
        )
    assert answer.status_code == 200, answer.text


@on_both_servers
async def test_a_client_that_leaves_while_we_settle_loses_nothing(site, payer, chain):
    chain.set_automine(False)
    headers = {"X-PAYMENT": payer.header()}
    # Only the read timeout is short: connecting may be slow on a busy machine.
    async with httpx.AsyncClient(timeout=httpx.Timeout(30, read=0.3)) as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.post(f"{site.url}/api/x402/picture", json=BODY, headers=headers)
    chain.set_automine(True)
    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.post(f"{site.url}/api/x402/picture", json=BODY, headers=headers)
    assert answer.status_code == 200, answer.text
    await collect(site, answer.json())
    assert chain.usdc_balance(WALLET) == 20_000
    assert (await site.services.store.counts())["payments"] == {"settled": 1}
