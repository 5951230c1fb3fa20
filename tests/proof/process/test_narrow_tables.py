"""The commands' tables in a terminal or pipe of any width: whole words, and nothing lost."""

import asyncio
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import uuid

import pytest
from click.testing import CliRunner

from gateway import Handle
from gateway.cli import main
from gateway.store import SqliteStore
from gateway_operator.tables import print_rows
from gateway_testing.facts import NOW, WALLET, leased, queued
from tests.conftest import Payer

JOB = "chatcmpl-9f8e7d6c5b4a39281706"
HASH = "0x7c88a848c53e8a4fd451080d8927042aefd3bd9b7567cf62cc53de1877e2ef4f"
OFFLINE = [["endpoints"], ["plugins", "--no-health"], ["tasks"], ["refunds", "list"]]
COMMANDS = pytest.mark.parametrize("words", OFFLINE, ids=" ".join)
_HEX = re.compile(r"0x[0-9a-fA-F]{40,}")


@pytest.fixture
def env(tmp_path, monkeypatch):
    """An operator's environment: five plugins that sell, some tasks, and refunds due."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    asyncio.run(_history(tmp_path))
    names = ("FAL_API_KEY", "OPENAI_API_KEY", "REPLICATE_API_KEY", "AZURE_DOCUMENTS_KEY")
    return {
        **{f"GATEWAY_{name}": "k" * 40 for name in names},
        "GATEWAY_AZURE_DOCUMENTS_ENDPOINT": "http://127.0.0.1:9",
        "GATEWAY_SANDBOX": "true",
        "GATEWAY_WALLET": WALLET,
        "GATEWAY_SETTLEMENT_KEY": "0x" + "1" * 64,
        "GATEWAY_DATA_DIR": str(tmp_path),
    }


async def _history(folder) -> None:
    async with SqliteStore(folder / "gateway.db") as store:
        queue = store.queue
        for number in (1, 2):
            lost = await leased(store, tx=number, id=str(uuid.uuid4()))
            await queue.begin_submit(lost, now=NOW + 5)
            await queue.save_handle(lost, Handle(id=JOB))
            await queue.fail(lost, details="uncertain_submit", error="Lost.", now=NOW)
        at_work = await leased(store, tx=3, id=str(uuid.uuid4()))
        await queue.extend(at_work, lease_s=60, now=NOW, progress=0.5, note="3rd in line")
        await queued(store, tx=4, id=str(uuid.uuid4()))


def said_by(env, words, **more) -> str:
    result = CliRunner().invoke(main, words, env={**env, **more}, catch_exceptions=False)
    assert result.stdout, result.output
    return result.stdout


def cells(env, words) -> list[list[str]]:
    """Return every cell's words, as in the JSON."""
    rows = json.loads(said_by(env, [*words, "--json"]))
    values = [value for row in rows for value in row.values() if not isinstance(value, bool)]
    texts = [" ".join(value) if isinstance(value, list) else str(value) for value in values]
    return [text.split() for value, text in zip(values, texts, strict=True) if value is not None]


def is_readable(said: str, words: list[str]) -> bool:
    """Whether every word is in one piece; a hash may be shortened."""
    found = {word.strip(",;") for word in said.split()}
    for word in (word.strip(",;") for word in words):
        if word not in found and _HEX.sub(f"{word[:6]}…{word[-4:]}", word) not in found:
            return False
    return True


@COMMANDS
@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_line_is_longer_than_the_terminal_and_no_word_is_broken(env, words, width):
    output = said_by(env, words, COLUMNS=str(width))
    assert max(map(len, output.splitlines())) <= width
    for cell in cells(env, words):
        assert is_readable(output, cell), (cell, output)


@COMMANDS
def test_wide_has_a_line_for_each_row_with_everything_in_full(env, words):
    output = said_by(env, [*words, "--wide"], COLUMNS="40")
    rows = json.loads(said_by(env, [*words, "--json"]))
    heading, *lines = output.splitlines()
    assert heading.split()[0] == next(iter(rows[0]))
    assert len(lines) == len(rows) > 1
    for line, row in zip(lines, rows, strict=True):
        for value in row.values():
            text = "" if value is None else str(value)
            shown = ", ".join(value) if isinstance(value, list) else text
            assert isinstance(value, bool) or shown in line


@COMMANDS
def test_a_pipe_of_unknown_width_has_lines_of_80_columns_at_most(env, words):
    assert max(map(len, said_by(env, words).splitlines())) <= 80


def test_a_terminal_is_filled_as_far_as_it_goes(env):
    """A real pseudo-terminal, which alone determines the width."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    path = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with subprocess.Popen(
        [sys.executable, "-m", "gateway", "refunds", "list"],
        env={**path, **env, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "dumb"},
        stdin=inner,
        stdout=inner,
        stderr=inner,
    ) as process:
        process.wait(timeout=60)
    output = os.read(outer, 65_536).decode()
    os.close(inner)
    os.close(outer)
    assert process.returncode == 0, output
    assert max(map(len, output.splitlines())) <= 80
    assert len(re.findall(r"^to: +0xa1a1…a1a1\s*$", output, re.MULTILINE)) == 2


def test_transfers_and_checks_are_readable_as_well(env, chain, tmp_path):
    env |= {"GATEWAY_RPC_URLS": chain.rpc_url}
    for name in ("FAL_API_KEY", "OPENAI_API_KEY", "REPLICATE_API_KEY", "AZURE_DOCUMENTS_KEY"):
        del env[f"GATEWAY_{name}"]
    tx_hash = Payer(chain).transfer(20_000, to=WALLET)
    transfers = ["transfers", "unused", "--hours", "0"]
    for words in (transfers, ["check"]):
        output = said_by(env, words, COLUMNS="80")
        # A path stays whole, and this test's folder may have a long one.
        lines = [line for line in output.splitlines() if str(tmp_path) not in line]
        assert max(map(len, lines)) <= 80
        for cell in cells(env, words) if words == transfers else [[WALLET]]:
            assert is_readable(output, cell), (cell, output)
    assert tx_hash in said_by(env, [*transfers, "--wide"], COLUMNS="80")


# -- rows that no database here has


def printed(capsys, monkeypatch, rows, *, width: int = 80, **options) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    print_rows(rows, as_json=False, **options)
    return capsys.readouterr().out


def test_a_sentence_is_wrapped_beside_the_other_columns(capsys, monkeypatch):
    sentence = "The refund key holds less USDC than is owed, so nothing was sent yet."
    output = printed(capsys, monkeypatch, [{"to": HASH, "amount": "0.02", "problem": sentence}])
    assert len(output.splitlines()) == 3
    assert "0x7c88…ef4f  0.02    The refund key" in output


def test_a_word_that_is_wider_than_the_terminal_stays_whole(capsys, monkeypatch):
    url = "https://example.com/" + "a" * 60
    rows = [{"task": "one", "job": f"at {url} since noon"}]
    assert url in printed(capsys, monkeypatch, rows, width=40).splitlines()[-2]


def test_a_vendors_words_cannot_steer_the_terminal(capsys, monkeypatch):
    rows = [{"note": "\x1b[2Jgone\rdone\x9b31m [bold]kept[/bold]"}]
    for options in ({}, {"wide": True}):
        output = printed(capsys, monkeypatch, rows, **options)
        assert not [char for char in output if not char.isprintable() and char != "\n"]
        assert "[bold]kept[/bold]" in output


def test_no_rows_are_no_output(capsys, monkeypatch):
    assert printed(capsys, monkeypatch, []) == ""
