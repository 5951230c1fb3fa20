"""No response confirms a guess of a secret: a right and a wrong one get the same bytes.

Secrets are redacted in every response. A response that quoted the client would show a right guess.
"""

import base64
import json
import secrets

import pytest

from tests.cases import each
from tests.conftest import running
from tests.gateway.refunds.conftest import fail_once
from tests.gateway.web.test_document_extraction import ExtractPlugin
from tests.plugins.gateway_operator.app.test_api import token_of

RIGHT, WRONG = "Tr0ub4dor&3-right", "Tr0ub4dor&3-wrong"


@pytest.fixture
async def gateway(settings, provider, chain, clock, monkeypatch):
    monkeypatch.setenv("VENDOR_API_KEY", RIGHT)
    plugins = [ExtractPlugin(provider)]
    async with running(settings, provider, more=plugins, now=clock) as started:
        assert RIGHT not in started.services.redactor.without_secrets(RIGHT)
        await started.services.payments.cutoff_block()
        yield started


def extract(**fields):
    file = base64.b64encode(b"hello").decode()
    return post("/api/x402/extract", {"fileBase64": file, "fileName": "a.txt", **fields})


def schema(**changes):
    whole = {"type": "object", "properties": {"due": {"type": "string"}}} | changes
    return extract(prompt=json.dumps(whole))


def post(path, body, **headers):
    return ("POST", path, body, {name.replace("_", "-"): text for name, text in headers.items()})


def get(path, **headers):
    return ("GET", path, None, {name.replace("_", "-"): text for name, text in headers.items()})


def picture(headers=(), **fields):
    return post("/api/x402/picture", {"prompt": "a boat"} | fields, **dict(headers))


def direct(**fields):
    return post("/api/proxy-generate", {"slug": "picture", "prompt": "a boat"} | fields)


def mcp(method, **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return post("/mcp", body, Accept="application/json, text/event-stream")


def payment(**changes):
    sent = {"x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": {}} | changes
    return base64.b64encode(json.dumps(sent).encode()).decode()


QUOTABLE = {
    "a property": lambda it: schema(properties={it: {"type": "sign"}}),
    "a property that is no schema": lambda it: schema(properties={it: 3}),
    "keywords of a property": lambda it: schema(properties={it: {"items": {"required": 3}}}),
    "parts of a property": lambda it: schema(properties={it: {"anyOf": {"enum": 3}}}),
    "a definition": lambda it: schema(**{"$defs": {it: {"title": 3}}}),
    "a pattern": lambda it: schema(patternProperties={it: {"enum": 3}}),
    "a dependent schema": lambda it: schema(dependentSchemas={it: {"$id": 3}}),
    "a reference": lambda it: schema(properties={"due": {"$ref": it}}),
    "a type": lambda it: schema(type=it),
    "a property's type": lambda it: schema(properties={"due": {"type": it}}),
    "half a schema": lambda it: extract(prompt='{"' + it),
    "a file's name": lambda it: extract(prompt="When?", fileName=it),
    "a file's ending": lambda it: extract(prompt="When?", fileName=f"a.{it}"),
    "a file": lambda it: extract(prompt="When?", fileBase64=it),
    "a path": lambda it: get(f"/{it}"),
    "an endpoint": lambda it: post(f"/api/x402/{it}", {"prompt": "a boat"}),
    "an endpoint's price": lambda it: get(f"/api/x402/{it}"),
    "a page": lambda it: get(f"/play/{it}"),
    "a task": lambda it: get(f"/api/task/{it}"),
    "a wait": lambda it: get(f"/api/task/a?wait={it}"),
    "an output": lambda it: get(f"/files/{it}/{it}?expires=1&signature={it}"),
    "a direct slug": lambda it: direct(slug=it, txHash="0x" + "ab" * 32),
    "a transaction": lambda it: direct(txHash=it),
    "a payer's signature": lambda it: direct(txHash="0x" + "ab" * 32, payerSignature=it),
    "a ratio": lambda it: picture(aspect_ratio=it),
    "a resolution": lambda it: picture(resolution=it),
    "a format": lambda it: picture(output_format=it),
    "a list": lambda it: picture(prompt=[it]),
    "an address": lambda it: picture(callbackUrl=it),
    "an address of http": lambda it: picture(callbackUrl=f"http://{it}/"),
    "an unknown field": lambda it: picture(prompt=None, **{it: it}),
    "no JSON": lambda it: post("/api/x402/picture", f'{{"prompt": {it}'.encode()),
    "a version": lambda it: post(f"/api/x402/picture?x402Version={it}", {"prompt": "a boat"}),
    "a payment": lambda it: picture({"X-PAYMENT": it}),
    "a payment's scheme": lambda it: picture({"X-PAYMENT": payment(scheme=it)}),
    "a payment's network": lambda it: picture({"X-PAYMENT": payment(network=it)}),
    "a payment's payload": lambda it: picture({"X-PAYMENT": payment(payload={it: it})}),
    "a credential": lambda it: picture({"Authorization": f"Payment {it}"}),
    "a long key": lambda it: picture({"Idempotency_Key": it * 30}),
    "a tool": lambda it: mcp("tools/call", name=it, arguments={}),
    "a tool's argument": lambda it: mcp("tools/call", name="get_task", arguments={"taskId": it}),
    "a method of MCP": mcp,
    "a revision of MCP": lambda it: mcp("initialize", protocolVersion=it, capabilities={}),
    "an admin's path": lambda it: get(f"/admin/{it}", Accept="application/json"),
    "a password": lambda it: post("/admin/login", {"password": it}),
}


async def answer_to(gateway, request, guess):
    method, path, body, headers = request
    sent = {"data": body} if isinstance(body, bytes) else {"json": body} if body else {}
    answer = await gateway.client.open(path, method=method, headers=headers, **sent)
    kept = sorted(
        (name, text) for name, text in answer.headers.items() if name.lower() not in CHANGING
    )
    # MCP's SDK echoes an unknown method, which confirms nothing.
    return answer.status_code, kept, (await answer.get_data()).replace(guess.encode(), b"?")


# Differences between two responses to one request.
CHANGING = ("date", "x-request-id")


@each("make", QUOTABLE)
async def test_an_answer_does_not_confirm_a_guess(gateway, make):
    right, wrong = [await answer_to(gateway, make(guess), guess) for guess in (RIGHT, WRONG)]
    assert right == wrong
    assert right[0] >= 400 or b"error" in right[2].lower()


def admin(path, **body):
    return f"/admin/api/v1{path}", body


TYPED = {
    "a reason": lambda it: admin("/endpoints/picture/pause", reason=it),
    "an endpoint": lambda it: admin(f"/endpoints/{it}/pause", reason="x"),
    "a refund": lambda it: admin(f"/refunds/{it}/reject", reason=it),
    "an alarm": lambda it: admin(f"/alarms/{it}/mute", reason="x", **{"for": "1h"}),
    "a length": lambda it: admin("/alarms/a/mute", reason="x", **{"for": it}),
    "a transfer": lambda it: admin(f"/transfers/{it}/1/seen", reason="x"),
}


@pytest.fixture
async def token(gateway):
    return await token_of(gateway)


@each("make", TYPED)
async def test_a_token_s_answers_say_a_guess_back_or_do_not_quote_it(gateway, token, make):
    answers = []
    for guess in (RIGHT, WRONG):
        path, body = make(guess)
        answer = await send(gateway, token, path, body)
        page = (await answer.get_data()).replace(guess.encode(), b"?")
        answers.append((answer.status_code, page))
        await send(gateway, token, *admin("/endpoints/picture/resume"))
        log = await gateway.client.get("/admin/api/v1/actions", headers=token)
        if answer.status_code == 200:
            assert guess in await log.get_data(as_text=True)
    assert answers[0] == answers[1]


async def send(gateway, token, path, body):
    key = {"Idempotency-Key": secrets.token_hex(8)}
    return await gateway.client.post(path, json=body, headers=token | key)


async def test_a_reason_is_shown_on_the_task_as_it_was_typed(gateway, token, payer, provider):
    shown = []
    for guess in (RIGHT, WRONG):
        task_id = (await fail_once(gateway, payer, provider))["taskId"]
        path, body = admin(f"/refunds/{task_id}/reject", reason=guess)
        assert (await send(gateway, token, path, body)).status_code == 200
        answer = await gateway.client.get(f"/admin/api/v1/tasks/{task_id}", headers=token)
        moments = (await answer.get_json())["timeline"]
        shown.append([one["reason"] for one in moments if one["reason"]])
    assert shown == [[RIGHT], [WRONG]]
