"""Secrets quoted by a plugin: neither the log nor a public page shows a key or a prompt."""

import json
import logging
import random
import sys
import threading
from urllib.parse import quote

import attrs
import pytest
import structlog

from gateway import Transient
from gateway.telemetry import redaction
from gateway.telemetry.logs import configure_logs, redacted_output, redacting
from gateway.telemetry.redaction import Redactor, hide_prompt, secrets_of

KEY = 'sk-MARKER/"key"+0123456789'
PROMPT = 'A lighthouse in "Tromsø",\nwhere Ms. MARKER-NAME of 12 Harbour Road lives with two cats.'


def test_of_a_loaded_plugin_the_values_it_declares_secret_are():
    from gateway import secret, setting

    @attrs.frozen(kw_only=True)
    class Section:
        login = secret("Login.")
        model: str = setting("", "Model.")

    from gateway.settings import SectionOffer, Settings

    values = {
        "acme_login": "login-of-acme",
        "acme_model": "a-large-model",
        "odd": "left-over-value",
    }
    settings = Settings(plugin_values=values)
    redactor = Redactor(secrets_of(settings, [SectionOffer("acme", "acme", Section)], are_all=True))
    said = redactor.clean("login-of-acme a-large-model left-over-value")
    assert said == "… a-large-model …"


def test_short_secrets_and_prompts_are_left_alone():
    redactor = Redactor(["", "error", "secret7"])
    hide_prompt("a boat")
    assert redactor.clean("error: a boat is no secret7") == "error: a boat is no secret7"


def test_a_prompt_is_hidden_from_its_own_task_alone():
    import contextvars

    redactor = Redactor()
    message = f"{PROMPT} cannot be drawn"
    contextvars.copy_context().run(hide_prompt, PROMPT)
    assert redactor.clean(message) == message
    own = contextvars.copy_context()
    own.run(hide_prompt, PROMPT)
    assert own.run(redactor.clean, message) == "… cannot be drawn"


@pytest.mark.parametrize("seed", range(20))
def test_no_run_of_a_prompt_survives_wherever_it_begins(seed):
    chance = random.Random(seed)
    prompt = "".join(chance.choices("abc", k=chance.randrange(8, 400)))
    start = chance.randrange(max(1, len(prompt) - 24))
    part = prompt[start : start + chance.randrange(24, 400)]
    before, after = ("".join(chance.choices("xyz", k=50)) for _ in range(2))
    hide_prompt(prompt)
    cleaned = Redactor().clean(before + part + after)
    if len(part) >= 24:
        assert cleaned == f"{before}…{after}"


@pytest.mark.parametrize("seed", range(10))
def test_the_quick_look_misses_no_text_that_would_be_changed(seed):
    chance = random.Random(seed)
    alphabets = ("ab", "abc %", 'a"\\\n', "äöü😀a", "0123456789abcdef", "a b/c?d=%41")
    redactor = Redactor()
    for _ in range(300):
        prompt = "".join(chance.choices(chance.choice(alphabets), k=chance.randrange(8, 200)))
        spelling = chance.choice(sorted(redaction._spellings(prompt.strip()) or {prompt}))
        start = chance.randrange(len(spelling))
        quoted = chance.choice((spelling, spelling[start:], spelling[start : start + 24]))
        text = f"request\nPOST\n/api/x402/<slug>\n{quoted}{chance.choice(('', 'xyz'))}\ninfo"
        hide_prompt(prompt)
        changed = any(redactor.clean(line) != line for line in (text, *text.split("\n")))
        assert redactor.may_hold(text) or not changed, (prompt, text)


def test_the_line_of_a_request_without_a_word_of_the_prompt_is_not_searched():
    hide_prompt("A lighthouse at dusk")
    assert not Redactor().may_hold("request\nPOST\n/api/x402/<slug>\n0a1b2c3d4e5f\ninfo")
    assert Redactor().may_hold("the vendor quotes: A lighthouse at dusk")


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
    output = capsys.readouterr().out
    assert output.count("SEEN") == 2
    assert "Transient" in output
    assert "MARKER" not in output


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
    output = capsys.readouterr()
    lines = sorted(output.out.splitlines(), key=len)
    assert lines[0] == "no end …"
    assert all(line.startswith("line ") and line.endswith(" … end") for line in lines[1:])
    assert len(lines) == 21
    assert output.err == "SEEN …\n"


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


def test_a_long_value_is_cut_while_a_prompt_is_hidden():
    """A plugin may log a megabyte of a vendor's response, and the buyer chose the prompt."""
    hide_prompt("qwertyuiopasdf " + ("b" + "a" * 10) * 900)
    long_text = "ca" + "a" * 1_000_000
    event = redacting(Redactor([KEY]))(None, "", {"event": "plugin said", "said": long_text})
    assert len(event["said"]) < 21_000
    hide_prompt(None)
