"""A paid call answers with the task's id and the receipt, whatever fails afterwards."""

import asyncio
import json

import attrs
import pytest

from gateway.contracts import OutputStoreUnavailable
from gateway.tasks.notifications import LongPolls
from tests.conftest import nothing_charged
from tests.plugins.gateway_mcp.app.agent import MODERN, TASKS, Agent


async def hang(*_, **__):
    await asyncio.get_running_loop().create_future()


async def fail(*_, **__):
    raise OutputStoreUnavailable("The bucket is down.")


async def break_down(*_, **__):
    raise RuntimeError("a fault of ours")


def hurry(gateway, **times):
    """Shorten a gateway's waits."""
    gateway.services.timing = attrs.evolve(gateway.services.timing, **times)


class RecordedPolls(LongPolls):
    """Never waits, and records whether a wait was requested."""

    def __init__(self) -> None:
        super().__init__(0, 0)
        self.wanted = 0

    def counted(self, address):
        self.wanted += 1
        return super().counted(address)


@pytest.mark.parametrize("links", [fail, hang, break_down])
async def test_a_paid_task_that_cannot_be_shown_is_named_with_its_receipt(
    agent, gateway, chain, payer, monkeypatch, links
):
    payment = payer.payload(version=2)
    # The picture is made; only its links fail.
    begun = await Agent(gateway, MODERN, TASKS).call("picture", payment, prompt="a boat")
    task_id = begun["taskId"]
    await gateway.wait(task_id)
    monkeypatch.setattr(gateway.services.output_store, "links", links)
    monkeypatch.setattr("gateway_mcp.calls._WAIT_S", 0.0)
    hurry(gateway, show_purchase_s=0.2)
    async with nothing_charged(gateway, chain):
        answer = await agent.call("picture", payment, prompt="a boat")
    assert answer["isError"] is False
    assert answer["structuredContent"]["taskId"] == task_id
    assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]
    assert (
        f'Do not pay again: call get_task with taskId "{task_id}"' in answer["content"][1]["text"]
    )
    assert answer["_meta"]["x402/payment-response"] == begun["_meta"]["x402/payment-response"]
    monkeypatch.undo()
    shown = await agent.call("get_task", taskId=task_id)
    assert shown["structuredContent"]["status"] == "completed"


async def test_a_client_that_takes_tasks_gets_the_task_in_that_case(gateway, payer, monkeypatch):
    agent, payment = Agent(gateway, MODERN, TASKS), payer.payload(version=2)
    begun = await agent.call("picture", payment, prompt="a boat")
    await gateway.wait(begun["taskId"])
    monkeypatch.setattr(gateway.services.output_store, "links", fail)
    answer = await agent.call("picture", payment, prompt="a boat")
    assert answer["resultType"] == "task"
    assert answer["taskId"] == begun["taskId"]
    assert answer["_meta"]["x402/payment-response"]["success"] is True


async def test_a_picture_that_never_arrives_is_still_a_link(agent, gateway, payer, monkeypatch):
    monkeypatch.setattr(gateway.services.output_store, "read", hang)
    hurry(gateway, pictures_s=0.05)
    answer = await agent.call("picture", payer.payload(version=2), prompt="a boat")
    assert answer["structuredContent"]["status"] == "completed"
    assert [block["type"] for block in answer["content"]] == ["text", "resource_link"]
    assert answer["_meta"]["x402/payment-response"]["success"] is True


# -- a client's minute


async def test_a_call_that_took_long_to_pay_does_not_wait_as_well(
    modern, gateway, clock, payer, blocked, monkeypatch
):
    polls = gateway.services.long_polls = RecordedPolls()
    accept = gateway.services.payments.accept_x402

    async def accept_slowly(*asked, **more):
        clock.offset_s += 46
        return await accept(*asked, **more)

    first = await modern.call("picture", payer.payload(version=2), prompt="a boat")
    assert (first["structuredContent"]["done"], polls.wanted) == (False, 1)
    monkeypatch.setattr(gateway.services.payments, "accept_x402", accept_slowly)
    late = await modern.call("picture", payer.payload(version=2), prompt="a boat")
    assert "get_task" in late["content"][1]["text"]
    assert late["_meta"]["x402/payment-response"]["success"] is True
    assert polls.wanted == 1


async def test_a_call_whose_checks_took_too_long_is_not_paid_for(
    modern, gateway, chain, clock, payer, provider, monkeypatch
):
    async def check_slowly(request, endpoint):
        clock.offset_s += 36

    payment = payer.payload(version=2)
    with monkeypatch.context() as patched:
        patched.setattr(provider, "validate", check_slowly)
        async with nothing_charged(gateway, chain):
            refused = await modern.call("picture", payment, prompt="a boat")
    assert refused["isError"] is True
    assert "send it again with the same payment" in refused["content"][0]["text"]
    bought = await modern.call("picture", payment, prompt="a boat")
    assert bought["structuredContent"]["status"] == "completed"
