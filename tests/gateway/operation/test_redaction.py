"""What a plugin quotes: neither the log nor a public page holds a key or a prompt."""

import json
import logging
import random
import sys
import threading
from urllib.parse import quote

import attrs
import pytest
import structlog

from gateway import AccountProblem, ContentPolicy, InvalidInput, Transient, redaction
from gateway.redaction import Redactor, hide_prompt, secrets_of
from gateway.web.logs import configure_logs, redacted_output
from tests.conftest import PNG, Payer, buy, running
from tests.proof.process.test_process import Gateway, until

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
    """Whether a text holds a secret, or enough of it in a row, plain or as JSON writes it."""
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


@pytest.fixture
def key(chain):
    from eth_account import Account

    account = Account.create()
    chain.fund(account.address, eth_wei=10**18, usdc_units=0)
    return account.key.hex()


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
    keyed = attrs.evolve(settings, plugin_values={"acme_api_key": KEY})
    provider.script = [AccountProblem(f"{KEY!r} may not draw {PROMPT}")]
    async with running(keyed, provider) as gateway:
        answer = await buy(gateway, payer.header(), prompt=PROMPT)
        task = await gateway.wait((await answer.get_json())["taskId"])
        assert task["status"] == "failed"
        await gateway.client.post("/admin/login", json={"password": "correct horse"})
        said = await (await gateway.client.get("/admin/ready")).get_data(as_text=True)
    assert "may not draw" in said
    assert not _holds(said, KEY)
    assert not _holds(said, PROMPT)


@pytest.mark.parametrize("error", [InvalidInput, ContentPolicy])
async def test_a_tasks_error_holds_no_key_and_no_prompt(settings, provider, payer, error):
    keyed = attrs.evolve(settings, plugin_values={"acme_api_key": KEY})
    provider.script = [error(f"{'x' * 470} {KEY} {PROMPT}")]  # cut after half of the key
    async with running(keyed, provider) as gateway:
        answer = await buy(gateway, payer.header(), prompt=PROMPT)
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["error"].startswith("xxx")
    assert KEY[:9] not in task["error"]
    assert not _holds(task["error"], PROMPT)


# -- what is secret


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


def test_of_a_loaded_plugin_the_values_it_declares_secret_are():
    from gateway import secret, setting

    @attrs.frozen(kw_only=True)
    class Section:
        login = secret("Login.")
        model: str = setting("", "Model.")

    from gateway import Settings

    values = {
        "acme_login": "login-of-acme",
        "acme_model": "a-large-model",
        "odd": "left-over-value",
    }
    settings = Settings(plugin_values=values)
    redactor = Redactor(secrets_of(settings, {"acme": ("acme", Section)}))
    said = redactor.clean("login-of-acme a-large-model left-over-value")
    assert said == "… a-large-model …"


def test_short_secrets_and_prompts_are_left_alone():
    redactor = Redactor(["", "error", "secret7"])
    hide_prompt("a boat")
    assert redactor.clean("error: a boat is no secret7") == "error: a boat is no secret7"


def test_a_prompt_is_hidden_from_its_own_task_alone():
    import contextvars

    redactor = Redactor()
    said = f"{PROMPT} cannot be drawn"
    contextvars.copy_context().run(hide_prompt, PROMPT)
    assert redactor.clean(said) == said
    own = contextvars.copy_context()
    own.run(hide_prompt, PROMPT)
    assert own.run(redactor.clean, said) == "… cannot be drawn"


@pytest.mark.parametrize("seed", range(20))
def test_no_run_of_a_prompt_survives_wherever_it_begins(seed):
    chance = random.Random(seed)
    prompt = "".join(chance.choices("abc", k=chance.randrange(8, 400)))
    start = chance.randrange(max(1, len(prompt) - 24))
    part = prompt[start : start + chance.randrange(24, 400)]
    before, after = ("".join(chance.choices("xyz", k=50)) for _ in range(2))
    hide_prompt(prompt)
    said = Redactor().clean(before + part + after)
    if len(part) >= 24:
        assert said == f"{before}…{after}"


@pytest.fixture
def restored_handlers():
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def test_a_prompt_that_looks_like_the_log_takes_no_line_apart(restored_handlers, capsys):
    configure_logs("json", Redactor())
    hide_prompt('"level":"warning"')
    structlog.get_logger().warning("task.failed", said='the prompt "level":"warning" is odd')
    line = json.loads(capsys.readouterr().out)
    assert (line["level"], line["event"]) == ("warning", "task.failed")
    assert line["said"] == "the prompt … is odd"


def raise_key() -> None:
    raise Transient(KEY)


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_line_of_either_format_is_clean(restored_handlers, log_format, capsys):
    configure_logs(log_format, Redactor([KEY]))
    try:
        raise_key()
    except Transient:
        structlog.get_logger().exception("SEEN", said=KEY, deep={KEY: [KEY.encode()]})
        logging.getLogger("library").exception("SEEN %s", KEY)
    said = capsys.readouterr().out
    assert said.count("SEEN") == 2
    assert "Transient" in said
    assert "MARKER" not in said


def test_prints_of_several_threads_stay_whole_and_clean(capsys):
    with redacted_output(Redactor([KEY])):
        threads = [
            threading.Thread(target=print, args=("line", number, KEY, "end"))
            for number in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("no end", KEY, end="")  # noqa: T201
        print("SEEN", KEY, file=sys.stderr)  # noqa: T201
    said = capsys.readouterr()
    lines = sorted(said.out.splitlines(), key=len)
    assert lines[0] == "no end …"
    assert all(line.startswith("line ") and line.endswith(" … end") for line in lines[1:])
    assert len(lines) == 21
    assert said.err == "SEEN …\n"


def test_a_short_line_beside_a_long_prompt_costs_no_spelling_of_it(monkeypatch):
    spelled = []
    monkeypatch.setattr(redaction, "_spellings", lambda text: spelled.append(text) or {text})
    redactor = Redactor()
    hide_prompt("😀" * 10_000)
    try:
        assert redactor.clean("POST /api/x402/picture 200") == "POST /api/x402/picture 200"
        assert not spelled
        assert redactor.clean("😀" * 1000) == "…"
        assert spelled
    finally:
        hide_prompt(None)


@pytest.mark.parametrize("prompt", ["a boat on a lake, " * 50, "😀" * 500])
def test_a_prompt_that_was_escaped_for_an_address_is_unescaped_and_found(prompt):
    redactor = Redactor()
    hide_prompt(quote(prompt))
    try:
        assert "…" in redactor.clean(f"not understood: {prompt}")
    finally:
        hide_prompt(None)
