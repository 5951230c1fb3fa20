"""A paid request whose answer was lost is sent again: its task comes before any refusal."""

import ast
import asyncio
import contextlib
from pathlib import Path

import pytest

from gateway import Transient
from gateway.chain.authorization_checks import SPENT
from gateway.errors import StoreUnavailable
from tests.conftest import running
from tests.gateway.methods.tickets import TicketPlugin, Tickets, soon
from tests.gateway.mpp.agent import Agent as MppAgent
from tests.gateway.mpp.agent import base64url
from tests.gateway.payer_proof import lost_answers
from tests.gateway.payer_proof.lost_answers import (
    DOORS,
    REFUSALS,
    EditPlugin,
    it_drains,
    no_plugin_has_it,
    the_provider_fails,
)
from tests.plugins.gateway_mcp.app.agent import Agent as McpAgent

UNCHARGED = "nothing was charged"
ROOT = Path(__file__).parents[3]


@pytest.fixture
async def studio(settings, provider, rpc, clock):
    tickets = TicketPlugin(Tickets(proof={"payer": "ann"}))
    more = [EditPlugin(provider), tickets]
    async with running(settings.changed(mpp_enabled=True), more=more, now=clock) as gateway:
        soon(gateway)
        gateway.chain = rpc
        await gateway.services.payments.cutoff_block()
        yield gateway


@pytest.mark.parametrize("refuse", REFUSALS, ids=lambda refuse: refuse.__name__)
async def test_a_repeat_gets_its_task_whatever_would_refuse_it_now(studio, payer, refuse):
    bought, fresh = {}, {}
    for pay in DOORS:
        send = await pay(studio, payer, "a.key")
        status, body = await send()
        assert status == 200, (pay.__name__, body)
        bought[pay.__name__] = send, body["taskId"]
        fresh[pay.__name__] = await pay(studio, payer, "another.key")
    count = await studio.services.store.counts()
    refuse(studio)
    for name, (send, task_id) in bought.items():
        status, body = await send()
        assert (status, body.get("taskId")) == (200, task_id), (name, body)
    # The refusal is one: the same request with an unused payment meets it.
    answers = {name: await send() for name, send in fresh.items()}
    refused = [body for status, body in answers.values() if status != 200]
    assert refused
    for body in refused:
        if body.get("code") == "EXECUTION_ERROR":
            assert UNCHARGED in body["error"]
    assert sum((await studio.services.store.counts())["payments"].values()) == (
        sum(count["payments"].values()) + len(fresh) - len(refused)
    )


async def _sender(studio, payer, door):
    """Return a function that sends one paid request from an address; it returns status and body."""
    if door == "mcp":
        payment = payer.payload(version=2)

        async def call(address):
            agent = McpAgent(studio, client=address)
            result = await agent.call("edit", payment, **lost_answers.ORDER)
            shown = result.get("structuredContent") or {}
            text = result["content"][0]["text"]
            status = 200 if "taskId" in shown else 402 if "accepts" in shown else 503
            return status, shown | {"error": text}

        return call
    headers = {"X-PAYMENT": payer.header()}
    if door == "mpp":
        agent = MppAgent(studio, payer)
        challenge = await agent.challenge(lost_answers.URL, **lost_answers.ORDER)
        headers = {"Authorization": f"Payment {base64url(agent.credential(challenge))}"}
    if door == "ticket":
        headers = {"Authorization": "Ticket twin:20000"}

    async def post(address, order=lost_answers.ORDER):
        scope = {"client": (address, 50_000)}
        answer = await studio.client.post(
            lost_answers.URL, json=order, headers=headers, scope_base=scope
        )
        return answer.status_code, await answer.get_json()

    return post


async def _away(*_):
    raise StoreUnavailable


def _the_payment_expires(studio, clock, monkeypatch):
    """The 402 comes from the time window."""
    clock.offset_s += 5_000
    monkeypatch.setattr(studio.services.store, "find_claim", _away)


def _the_ticket_is_bad(studio, clock, monkeypatch):
    studio.services.payments.methods.by_name["ticket"].is_bad = "expired"
    monkeypatch.setattr(studio.services.store, "find_claim", _away)


def _the_provider_refuses(studio, clock, monkeypatch):
    studio.services.catalog.find("edit").upstream.provider.refuse = "No more winters."
    monkeypatch.setattr(studio.services.store, "find_claim", _away)


@contextlib.asynccontextmanager
async def _held(monkeypatch, owner, name, send):
    """Send a request whose check waits until the block ends; give its task."""
    seen, go, check = asyncio.Event(), asyncio.Event(), getattr(owner, name)

    async def wait(*asked):
        seen.set()
        await go.wait()
        await check(*asked)

    with monkeypatch.context() as slow:
        slow.setattr(owner, name, wait)
        late = asyncio.create_task(send("203.0.113.9"))
        await seen.wait()
    yield late
    go.set()


@pytest.mark.parametrize("door", ["x402", "ticket"])
async def test_a_request_that_is_refused_while_its_twin_pays_gets_the_task(
    studio, payer, provider, monkeypatch, door
):
    send, sold_by = await _sender(studio, payer, door), provider.validate

    async def fail(*_):
        raise Transient("503")

    provider.validate = fail
    async with _held(monkeypatch, provider, "validate", send) as late:
        provider.validate = sold_by
        status, first = await send("203.0.113.10")
        assert status == 200
    status, second = await late
    assert (status, second.get("taskId")) == (200, first["taskId"]), second


@pytest.mark.parametrize(
    ("door", "refuse"),
    [
        ("x402", _the_payment_expires),
        ("mpp", _the_payment_expires),
        ("ticket", _the_ticket_is_bad),
        ("x402", _the_provider_refuses),
        ("mcp", _the_provider_refuses),
    ],
)
async def test_a_refusal_does_not_deny_a_charge_while_the_database_is_away(
    studio, payer, provider, clock, monkeypatch, door, refuse
):
    send = await _sender(studio, payer, door)
    owner, name = (Tickets, "check") if door == "ticket" else (provider, "validate")
    async with _held(monkeypatch, owner, name, send) as late:
        assert (await send("203.0.113.10"))[0] == 200
        refuse(studio, clock, monkeypatch)
    status, body = await late
    assert status == 503, body
    assert "never charged twice" in body["error"]
    assert "charged" not in body


async def test_a_refusal_does_not_deny_that_the_payment_bought_something_else(
    studio, payer, provider, clock, monkeypatch
):
    send = await _sender(studio, payer, "x402")
    async with _held(monkeypatch, provider, "validate", send) as late:
        other = lost_answers.ORDER | {"prompt": "make it summer"}
        assert (await send("203.0.113.10", other))[0] == 200
        clock.offset_s += 5_000
    status, body = await late
    assert (status, body["error"]) == (402, SPENT)
    assert "charged" not in body


@pytest.mark.parametrize("refuse", [the_provider_fails, no_plugin_has_it, it_drains])
async def test_a_used_transfer_without_its_key_is_used_whatever_would_refuse_it_now(
    studio, payer, refuse
):
    body = lost_answers.ORDER | {"slug": "edit", "txHash": payer.transfer(20_000)}
    answer = await studio.client.post("/api/proxy-generate", json=body)
    assert answer.status_code == 200
    refuse(studio)
    answer = await studio.client.post("/api/proxy-generate", json=body)
    assert (await answer.get_json())["code"] == "TX_ALREADY_USED"
    answer = await studio.client.post("/api/proxy-generate", json=body | {"slug": "none"})
    assert (await answer.get_json())["code"] == "NOT_FOUND"


async def test_a_payment_that_is_on_record_for_another_request_is_not_called_uncharged(
    studio, payer
):
    header = {"X-PAYMENT": payer.header()}
    order = lost_answers.ORDER
    answer = await studio.client.post(lost_answers.URL, json=order, headers=header)
    assert answer.status_code == 200
    the_provider_fails(studio)
    other = order | {"prompt": "make it summer"}
    answer = await studio.client.post(lost_answers.URL, json=other, headers=header)
    body = await answer.get_json()
    assert (answer.status_code, body["code"]) == (500, "EXECUTION_ERROR")
    assert "charged" not in body["error"]


def _sentences(path: Path) -> list[str]:
    """Return the texts of a module, without its docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node, owners)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [one.value for one in texts if isinstance(one.value, str) and id(one) not in docs]


def _has_docstring(node, owners) -> bool:
    return isinstance(node, owners) and ast.get_docstring(node) is not None


def test_only_the_code_behind_the_lookup_says_that_nothing_was_charged():
    said = {
        str(path.relative_to(ROOT))
        for folder in ("gateway", "plugins", "providers")
        for path in (ROOT / folder).rglob("*.py")
        for text in _sentences(path)
        if any(words in text.lower() for words in (UNCHARGED, "charged nothing", "not charged"))
    }
    assert said == {"gateway/payments/accept.py"}
