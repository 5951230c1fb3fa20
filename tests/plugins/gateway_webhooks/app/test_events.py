"""Events sent to a buyer's `callbackUrl`, and their signatures."""

import asyncio
import base64

import attrs
import pytest
from standardwebhooks import WebhookVerificationError

from gateway import ContentPolicy, Result
from gateway_webhooks import Deliveries
from tests.conftest import Payer, buy, running
from tests.gateway.web.orders import show
from tests.plugins.gateway_webhooks.app.conftest import nothing_left, waits

HOOK = "/hook?token=SECRET-IN-THE-ADDRESS"


def hook(receiver) -> str:
    return f"http://127.0.0.1:{receiver.port}{HOOK}"


async def bought(gateway, payer, receiver, **fields) -> dict:
    answer = await buy(gateway, payer.header(), callbackUrl=hook(receiver), **fields)
    assert answer.status_code == 200, await answer.get_json()
    return await answer.get_json()


async def test_a_completed_task_is_told_once_with_the_polls_own_body(gateway, payer, receiver):
    started = await bought(gateway, payer, receiver)
    (delivered,) = await receiver.got(1)
    await nothing_left(gateway)
    assert delivered.path == HOOK
    assert delivered.headers["content-type"] == "application/json"
    event = delivered.verified_by(started["callbackSecret"])
    assert event["type"] == "task.completed"
    assert event["data"] == await show(gateway, started["taskId"])
    assert event["timestamp"] == event["data"]["completedAt"]
    assert len(receiver.delivered) == 1


@pytest.mark.parametrize(
    "text", ["x" * 32_000, "x" * 64_000, 'x"' * 40_000, "x" + "\U0001f6a2" * 10**6]
)
async def test_a_body_has_64_kb_at_most_and_links_to_a_larger_result(
    gateway, payer, provider, receiver, text
):
    provider.script = [Result(text=text)]
    paper = {"prompt": None, "fileBase64": "aGVsbG8=", "fileName": "a.txt"}
    header, url = payer.header(10_000), "/api/x402/paper"
    answer = await buy(gateway, header, url=url, callbackUrl=hook(receiver), **paper)
    started = await answer.get_json()
    (delivered,) = await receiver.got(1)
    assert len(delivered.body) <= 64 * 1024
    data = delivered.verified_by(started["callbackSecret"])["data"]
    shown = await show(gateway, started["taskId"])
    assert shown["result"]["text"] == text
    if len(text) == 32_000:
        assert data == shown
    else:
        assert data["result"] == shown["result"] | {"text": None, "omitted": True}
        assert data["statusUrl"].endswith(f"/api/task/{started['taskId']}")
        assert data | {"result": None} == shown | {"result": None, "statusUrl": data["statusUrl"]}


async def test_a_transfer_s_buyer_is_told_as_well(gateway, payer, receiver):
    body = {"slug": "picture", "prompt": "a boat", "txHash": payer.transfer(20_000)}
    answer = await gateway.client.post(
        "/api/proxy-generate", json=body | {"callbackUrl": hook(receiver)}
    )
    started = await answer.get_json()
    (delivered,) = await receiver.got(1)
    event = delivered.verified_by(started["callbackSecret"])
    assert (event["type"], event["data"]["taskId"]) == ("task.completed", started["taskId"])


async def test_a_failed_task_is_told_with_the_refund_that_is_due(
    gateway, payer, provider, receiver
):
    provider.script = [ContentPolicy("No boats.")]
    started = await bought(gateway, payer, receiver)
    (delivered,) = await receiver.got(1)
    event = delivered.verified_by(started["callbackSecret"])
    assert event["type"] == "task.failed"
    assert (event["data"]["details"], event["data"]["refund"]["state"]) == (
        "content_policy",
        "refund_due",
    )


async def test_the_secret_is_one_of_its_task_and_the_same_at_each_repetition(
    gateway, payer, receiver
):
    header = payer.header()
    first, again = [
        await (await buy(gateway, header, callbackUrl=hook(receiver))).get_json() for _ in range(2)
    ]
    other = await bought(gateway, payer, receiver)
    assert first == again
    assert first["callbackSecret"] != other["callbackSecret"]
    prefix, _, encoded = first["callbackSecret"].partition("_")
    assert (prefix, len(base64.b64decode(encoded, validate=True))) == ("whsec", 32)
    delivered = {one.event["data"]["taskId"]: one for one in await receiver.got(2)}
    delivered[first["taskId"]].verified_by(first["callbackSecret"])
    with pytest.raises(WebhookVerificationError):
        delivered[first["taskId"]].verified_by(other["callbackSecret"])


async def test_a_purchase_without_an_address_has_no_secret_and_tells_nobody(
    gateway, payer, receiver
):
    started = await (await buy(gateway, payer.header())).get_json()
    await gateway.wait(started["taskId"])
    assert "callbackSecret" not in started
    assert not await waits(gateway)


async def test_the_address_is_part_of_the_request_and_never_of_an_answer(
    gateway, payer, provider, receiver
):
    seen, validate = [], provider.validate

    async def watching(request, endpoint):
        seen.append(request)
        await validate(request, endpoint)

    provider.validate = watching
    header = payer.header()
    started = await (await buy(gateway, header, callbackUrl=hook(receiver))).get_json()
    # The same authorization for another address is another request.
    assert (await buy(gateway, header)).status_code == 402
    elsewhere = await buy(gateway, header, callbackUrl="http://127.0.0.1:9/other")
    assert elsewhere.status_code == 402
    answer = await gateway.client.get(f"/api/task/{started['taskId']}?wait=20")
    assert "SECRET" not in await answer.get_data(as_text=True)
    assert "SECRET" not in repr(await gateway.services.store.task(started["taskId"]))
    assert {request.callback_url for request in [*provider.requests, *seen]} == {None}


async def test_nothing_is_looked_up_or_sent_before_the_payment(gateway, payer, receiver):
    asked = []
    gateway.services.find(Deliveries).sender.resolve = lambda *args, **_: asked.append(args) or []
    unpaid = await buy(gateway, None, callbackUrl=hook(receiver))
    assert unpaid.status_code == 402
    refused = await buy(gateway, payer.header(1), callbackUrl=hook(receiver))
    assert refused.status_code == 402
    assert (asked, receiver.delivered) == ([], [])


@pytest.fixture
async def refunding(settings, chain, provider, clock):
    from eth_account import Account

    from gateway.payments.refunds import RefundTiming
    from gateway_webhooks import DeliveryTiming
    from tests.waits import Waits, started_with

    key = Account.create()
    chain.fund(key.address, eth_wei=10**18, usdc_units=1_000_000)
    settings = attrs.evolve(settings, refund_key=key.key.hex(), refunds="automatic")
    with started_with(Waits(refunds=RefundTiming(sweep_s=0.05))):
        async with running(settings, provider, now=clock) as started:
            started.services.find(Deliveries).timing = DeliveryTiming(poll_s=0.05)
            yield started


async def test_a_refund_is_told_once_it_was_seen_on_the_chain(refunding, payer, provider, receiver):
    provider.script = [ContentPolicy("No boats.")]
    started = await bought(refunding, payer, receiver)
    failed, sent = await receiver.got(2)
    assert failed.verified_by(started["callbackSecret"])["type"] == "task.failed"
    event = sent.verified_by(started["callbackSecret"])
    assert event["type"] == "refund.sent"
    assert event["data"]["refund"]["state"] == "refunded"
    assert event["data"]["refund"]["transaction"].startswith("0x")
    assert failed.id != sent.id


async def test_a_purchase_that_took_nothing_tells_nobody(gateway, chain, receiver):
    """Without a payment, nothing is sent at a caller's request."""
    from gateway.payments.settlement import SettlementTiming

    gateway.services.payments.outcome_s = 0.2
    gateway.services.settlements.timing = SettlementTiming(poll_s=0.05, full_check_s=0.2)
    chain.set_automine(False)
    started = await bought(gateway, Payer(chain), receiver)
    chain.advance(400)
    task = await gateway.wait(started["taskId"])
    assert task["code"] == "PAYMENT_NOT_SETTLED"
    await asyncio.sleep(0)
    assert not await waits(gateway)
    assert receiver.delivered == []


async def test_an_event_while_the_plugin_is_off_for_one_start_is_sent_at_the_next(
    settings, provider, payer, receiver
):
    begun, gate = asyncio.Event(), asyncio.Event()

    async def wait(request, job):
        begun.set()
        await gate.wait()

    provider.script = [wait]
    async with running(settings, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        started = await bought(gateway, payer, receiver)
        await begun.wait()
        gateway.services.timing = attrs.evolve(gateway.services.timing, drain_tasks_s=0.0)
    gate.set()
    off = attrs.evolve(settings, plugins_disabled=("gateway_webhooks",))
    async with running(off, provider) as gateway:
        assert (await gateway.wait(started["taskId"]))["status"] == "completed"
    assert receiver.delivered == []
    async with running(settings, provider):
        (delivered,) = await receiver.got(1)
    assert delivered.event["data"]["taskId"] == started["taskId"]
