"""Secrets quoted by a plugin: neither log nor pages of a running gateway show a key or a prompt."""

import json

import attrs
import pytest

from gateway import AccountProblem, ContentPolicy, InvalidInput
from gateway.telemetry.redaction import Redactor, secrets_of
from tests.conftest import PNG, Payer, buy, running
from tests.proof.process.gateway_process import Gateway, until

KEY = 'sk-MARKER/"key"+0123456789'
PROMPT = 'A lighthouse in "Tromsø",\nwhere Ms. MARKER-NAME of 12 Harbour Road lives with two cats.'
HOSTILE = (
    f"PNG = {PNG!r}"
    """
import logging, os, pathlib, sys, threading, warnings
import structlog
from gateway import *
from gateway import secret
import attrs

TODO = pathlib.Path(os.environ["HOSTILE_TODO"])
KEY = os.environ["GATEWAY_HOSTILE_API_KEY"]
print("SEEN import", KEY)
at_import = logging.StreamHandler()
logging.getLogger("hostile.own").addHandler(at_import)

@attrs.frozen(kw_only=True)
class Section:
    api_key = secret("Key.")

def quoted(prompt):
    return f"{KEY} {prompt} {KEY!r} {prompt!r} {prompt[20:70]}"

def printed(prompt):
    print("SEEN print", KEY, prompt, prompt[:60])
    print("SEEN stderr", quoted(prompt), file=sys.stderr)
    sys.stdout.buffer.write(f"SEEN bytes {quoted(prompt)}\\n".encode())
    sys.stdout.write("SEEN halves " + KEY[:9])
    sys.stdout.write(KEY[9:] + "\\n")

def logged(prompt):
    logging.getLogger("hostile").warning("SEEN logging %s", quoted(prompt))
    logging.getLogger("hostile.own").warning("SEEN own %s", quoted(prompt))
    structlog.get_logger().warning("SEEN structlog", said=quoted(prompt), all={"of": [prompt, KEY]})
    try:
        raise ValueError(quoted(prompt))
    except ValueError:
        logging.getLogger("hostile").exception("SEEN exception")
        structlog.get_logger().exception("SEEN structlog exception")

def warned(prompt):
    warnings.warn("SEEN warning " + quoted(prompt))

def threaded(prompt):
    def run():
        raise RuntimeError("SEEN thread " + KEY)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

def raised(kind):
    def go(prompt):
        raise kind("SEEN " + quoted(prompt))
    return go

MISCHIEF = {
    "print": printed, "log": logged, "warn": warned, "thread": threaded,
    "transient": raised(Transient), "plain": raised(RuntimeError), "invalid": raised(InvalidInput),
    "policy": raised(ContentPolicy), "account": raised(AccountProblem),
}

class Hostile:
    name = "hostile"
    traits = Traits(idempotent_submit=True)

    async def validate(self, request, endpoint):
        if TODO.read_text() == "validate":
            raise InvalidInput("SEEN " + quoted(request.prompt))

    async def submit(self, request, job):
        todo = TODO.read_text()
        TODO.write_text("")
        if todo:
            MISCHIEF[todo](request.prompt)
        return Result(outputs=(Output(data=PNG, media_type="image/png"),))

@hookimpl
def register_settings(register):
    register("hostile", Section)

@hookimpl
def register_endpoints(register, settings):
    register(
        Endpoint(slug="slow", title="Slow", description="Slow.", model="slow-1", provider="slow",
                 capability="text-to-image", price_units=usdc("0.02")),
        Hostile(),
    )
"""
)


def _holds(text: str, secret: str) -> bool:
    """Whether a text contains a secret, or a large part of it, plain or as JSON."""
    pieces = [secret[at : at + 24] for at in range(max(1, len(secret) - 23))]
    spelled = [
        *pieces,
        *(json.dumps(piece)[1:-1] for piece in pieces),
        *(json.dumps(piece, ensure_ascii=False)[1:-1] for piece in pieces),
    ]
    return any(piece in text for piece in spelled)


@pytest.fixture
def hostile(tmp_path, chain, key):
    todo = tmp_path / "todo"
    todo.write_text("")
    gateway = Gateway(tmp_path, chain, key, GATEWAY_HOSTILE_API_KEY=KEY, HOSTILE_TODO=str(todo))
    (gateway.site / "slow_provider.py").write_text(HOSTILE)
    gateway.todo = todo
    gateway.start()
    yield gateway
    gateway.kill()


def test_a_hostile_plugin_brings_no_key_and_no_prompt_into_the_log_or_a_page(hostile, chain):
    payer, public = Payer(chain), []

    def buy_one(todo: str) -> dict:
        hostile.todo.write_text(todo)
        body = {"prompt": PROMPT}
        answer = hostile.request("POST", "/api/x402/slow", body, {"X-PAYMENT": payer.header()})
        public.append(json.dumps(answer))
        return answer[1]

    for todo in ("print", "log", "warn", "thread", "transient", "plain", "invalid", "policy"):
        task_id = buy_one(todo)["taskId"]
        public.append(json.dumps(hostile.task(task_id, wait_s=20)))
    assert "SEEN" in public[-1]
    assert "SEEN" in json.dumps(buy_one("validate"))
    hostile.task(buy_one("account")["taskId"], wait_s=20)
    until(lambda: hostile.events("provider.off_sale"))
    public.append(json.dumps(hostile.request("GET", "/api/ready")))
    log = hostile.log.read_text()
    for seen in ("import", "print", "stderr", "bytes", "halves", "logging", "own", "structlog"):
        assert f"SEEN {seen}" in log
    for seen in ("exception", "structlog exception", "warning", "thread"):
        assert f"SEEN {seen}" in log
    for text in (log, *public):
        assert not _holds(text, KEY)
        assert not _holds(text, PROMPT)
        assert "MARKER" not in text.replace("MARKER-RPC-KEY", "")


async def test_the_operators_page_holds_no_key_and_no_prompt(settings, provider, payer):
    keyed = settings.changed(acme_api_key=KEY)
    provider.script = [AccountProblem(f"{KEY!r} may not draw {PROMPT}")]
    async with running(keyed, provider) as gateway:
        answer = await buy(gateway, payer.header(), prompt=PROMPT)
        task = await gateway.wait((await answer.get_json())["taskId"])
        assert task["status"] == "failed"
        await gateway.client.post("/admin/login", json={"password": "correct horse"})
        page = await (await gateway.client.get("/admin/ready")).get_data(as_text=True)
    assert "may not draw" in page
    assert not _holds(page, KEY)
    assert not _holds(page, PROMPT)


@pytest.mark.parametrize("error", [InvalidInput, ContentPolicy])
async def test_a_tasks_error_holds_no_key_and_no_prompt(settings, provider, payer, error):
    keyed = settings.changed(acme_api_key=KEY)
    provider.script = [error(f"{'x' * 470} {KEY} {PROMPT}")]  # cut after half of the key
    async with running(keyed, provider) as gateway:
        answer = await buy(gateway, payer.header(), prompt=PROMPT)
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["error"].startswith("xxx")
    assert KEY[:9] not in task["error"]
    assert not _holds(task["error"], PROMPT)


# -- the secrets


def test_every_secret_setting_and_what_addresses_hide_is_taken_out(settings, monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", "token-of-the-environment")
    full = attrs.evolve(
        settings,
        rpc_urls=(
            "https://base.example.com/v2/RpcKey0123456789",
            "https://user-name:pass-word@rpc.example.com/?apikey=query-key-123",
        ),
        settlement_key="0x" + "5E" * 32,
        facilitator_key_secret="-----BEGIN KEY-----\nMHcCAQEEIDNvdGhpbmc\n-----END KEY-----",
        plugin_values={"acme_api_key": "key-of-acme", "acme_url": "https://api.acme.example"},
    )
    redactor = Redactor(secrets_of(full))
    hidden = (
        "RpcKey0123456789",
        "pass-word",
        "query-key-123",
        "5e" * 32,
        "0x" + "5E" * 32,
        "MHcCAQEEIDNvdGhpbmc",
        "key-of-acme",
        "token-of-the-environment",
    )
    for secret in hidden:
        assert secret not in redactor.clean(f"it is {secret}, is it not")
    shown = "GET https://api.acme.example gave 500 at base.example.com for 0x5E5E"
    assert redactor.clean(shown) == shown
