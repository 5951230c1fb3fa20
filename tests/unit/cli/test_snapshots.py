"""Each command's output, compared with `snapshots/<command>.txt`.

`UPDATE_SNAPSHOTS=1 python -m pytest tests/unit/cli/test_snapshots.py` rewrites all; read the diff.
"""

import asyncio
import gc
import os
import re
import shlex
import sys
import time
from pathlib import Path

import click
import pytest
import structlog
from click.testing import CliRunner

import gateway.cli
from gateway.chain import keys
from gateway.cli import main
from gateway.domain import Block, Log, Receipt
from gateway.domain.eip3009 import TRANSFER_TOPIC
from gateway.store import SqliteStore
from gateway.version import VERSION
from gateway_check import sandboxes
from gateway_check.commands import check
from gateway_operator.commands import session
from gateway_testing.facts import NOW, WALLET, leased
from tests.migrated_databases import put_database

SNAPSHOTS = Path(__file__).parent / "snapshots"
COLUMNS = 80
KEY = "1" * 64
SETTINGS = {
    "GATEWAY_WALLET": WALLET,
    "GATEWAY_SETTLEMENT_KEY": KEY,
    # A real chain refuses these examples.
    "GATEWAY_RPC_URLS": "http://127.0.0.1:1",
    "GATEWAY_DATA_DIR": "data",
    "GATEWAY_SANDBOX": "true",
    "COLUMNS": str(COLUMNS),
}
NO_WALLET = {"GATEWAY_WALLET": ""}
REFUND_KEY = {"GATEWAY_REFUND_KEY": "2" * 64}
COMFYUI = {
    "GATEWAY_COMFYUI_WORKFLOWS": "workflows",
    # Nothing answers there.
    "GATEWAY_COMFYUI_URLS": "http://127.0.0.1:1",
}
COPIES = {"GATEWAY_BACKUP_URL": "file:///proc/none"}
STRANGER = "0x" + "99" * 20

# For each command the lines to run, in order, in one folder: first with a store without tasks;
# after `...`, with the failed task `task-1`. A line may come with settings.
LINES = {
    "actions": ["actions", "actions --json", "actions --limit 0"],
    "alarms": [
        "alarms",
        "alarms --json",
        "alarms --past",
        "alarms test",
        "alarms test --help",
        "alarms mute gas",
        "alarms mute gas --for 1h --reason known",
        "alarms mute gas --for soon --reason known",
    ],
    "backup": ["backup copy.db", "backup copy.db", "backup missing/copy.db", "backup"],
    "backups": ["backups", ("backups", COPIES), ("backups --json", COPIES)],
    "books": [
        "books --from 2026-03-01 --to 2026-03-02",
        "books --from 2026-03-01 --to 2026-03-01 --json",
        "books --from soon",
        "books --eth-usd 0",
    ],
    "buy": [
        "buy picture 'a boat'",
        "buy --url https://gateway.test",
        "buy picture --url https://gateway.test",
        "buy Picture 'a boat' --url https://gateway.test",
        "buy picture 'a boat' --url http://gateway.test",
        "buy picture 'a boat' --url https://gateway.test --max free",
        f"buy picture 'a boat' --url https://gateway.test --key {KEY}",
        "buy picture 'a boat' --url https://gateway.test --idempotency-key 'a b'",
        "buy picture 'a boat' --url https://gateway.test --out missing/picture.png",
        "buy picture --task task-1 --url https://gateway.test",
        "buy --task ../x --url https://gateway.test",
    ],
    # `--wide`, because the width of the columns depends on the path of the folder.
    "check": ["check --wide", ("check --wide", COPIES), "check --wide --listing"],
    "codes": ["codes off"],
    "comfyui": [
        "comfyui list",
        ("comfyui check", COMFYUI),
        ("comfyui remove portrait", COMFYUI),
        ("comfyui add --last --name portrait --price 0.03", COMFYUI),
    ],
    "demo": [],
    "drill": ["drill", ("drill", COPIES)],
    "encrypt-key": [
        "encrypt-key key.json --key 12 --password x",
        f"encrypt-key key.json --key {KEY} --password x",
        f"encrypt-key key.json --key {KEY} --password x",
        f"encrypt-key missing/key.json --key {KEY} --password x",
    ],
    "endpoints": [
        "endpoints --json",
        ("endpoints", {"GATEWAY_SANDBOX": "false"}),
        "endpoints pause sandbox-image --reason 'new prices'",
        "endpoints pause sandbox-image --reason 'new prices'",
        "endpoints cost sandbox-image 0.03",
        "endpoints price document-parser 0.05 --reason dearer",
        "endpoints price sandbox-image 0.01 --reason cheaper",
        "endpoints",
        "endpoints resume sandbox-image",
        "endpoints price sandbox-image --reset --reason back",
        "endpoints price sandbox-image --reason back",
        "endpoints price sandbox-image free --reason gift",
        "endpoints price sandbox-image 0.02",
        "endpoints pause nonsense --reason x",
        "actions --action endpoint.resume --subject sandbox-image --limit 1 --before 1",
    ],
    "examples": [
        "examples",
        "examples nothing",
        "examples --prompt 'a boat'",
        "examples sandbox-image",
        "examples sandbox-image --remove",
    ],
    "hash-password": ["hash-password --password x"],
    "http": [
        "http check speech",
        ("http check speech", {"GATEWAY_HTTP_ENDPOINTS": "missing"}),
    ],
    "mcp-config": [
        "mcp-config",
        (
            "mcp-config",
            {"GATEWAY_NAME": "Paul's Pictures", "GATEWAY_BASE_URL": "https://a.example"},
        ),
        ("mcp-config", {"GATEWAY_MCP": "false"}),
        ("mcp-config --url https://shop.example/", NO_WALLET),
        ("mcp-config --url http://shop.example", NO_WALLET),
        ("mcp-config --url shop.example", NO_WALLET),
    ],
    "mcp-wallet": [
        "mcp-wallet",
        f"mcp-wallet --key {KEY}",
        "mcp-wallet --key env:BUYER_KEY",
        "mcp-wallet --key missing.json",
        "mcp-wallet --key demo",
        "mcp-wallet --key demo --url https://gateway.test",
        "mcp-wallet --key keyring --url http://gateway.test",
        "mcp-wallet --key keyring --per-day lots",
    ],
    "migrate": ["migrate --check", "migrate"],
    "migrate-store": [
        "migrate-store",
        "migrate-store --to mysql://db.example/gateway",
        "migrate-store --check --to postgresql://gateway:hunter2@127.0.0.1:9/gateway",
        "migrate-store --take-back --to postgresql://gateway:hunter2@127.0.0.1:9/gateway",
    ],
    "nodes": ["nodes", "nodes --json"],
    "payers": [
        "payers",
        "payers barred",
        "payers barred --json",
        f"payers lift {STRANGER} --note x",
        f"payers lift {STRANGER}",
        "payers lift 0x12 --note x",
    ],
    "plugins": [
        "plugins --no-health",
        "plugins new acme",
        "plugins new acme",
        "plugins new 'Not a name'",
        "plugins new openai",
    ],
    "refunds": [
        "refunds --json",
        "refunds list",
        "refunds list --json",
        "refunds --json list",
        "refunds --json reject task-1 --note x",
        "refunds approve",
        "refunds approve --all",
        "refunds approve --all task-1",
        "refunds approve task-1",
        "refunds approve task-1 --to 0x12",
        "refunds reject --note x",
        "refunds reject task-1",
        "refunds pay",
        ("refunds pay", REFUND_KEY),
        ("refunds pay", {"GATEWAY_REFUND_KEY": KEY}),
        "refunds pay --wait nan",
        "...",
        "refunds --json",
        "refunds list",
        "refunds reject task-1 --note x",
        "refunds take-back task-1",
        "refunds approve task-1",
        "refunds take-back task-1",
        "refunds approve task-1",
        "refunds list --wide",
    ],
    "reload": ["reload", ("reload", {"GATEWAY_DATA_DIR": "elsewhere"})],
    "restore": ["restore latest", "restore missing.db", "backup copy.db", "restore copy.db"],
    "serve": [],
    "tasks": ["tasks", "tasks --json", "tasks --status lost", "tasks --limit 0", "...", "tasks"],
    "tokens": [
        "tokens",
        "tokens list",
        "tokens list --json",
        "tokens new '<b>'",
        "tokens new cron --days 0",
        "tokens revoke cron",
    ],
    "transfers": [
        "transfers --json",
        "transfers unused",
        "transfers unused --days nan",
        "transfers unclaimed --days 30",
        "transfers seen 0x12 0 --reason x",
        f"transfers seen 0x{'ab' * 32} 0 --reason ' '",
        f"transfers seen 0x{'ab' * 32} 0 --reason 'sent back'",
        *(f"transfers seen 0x{digits * 32} 0 --reason again" for digits in ("AB", "cd")),
    ],
}
# A mistake in the settings, which every command that reads them reports.
MISTAKEN = {
    "actions": "actions",
    "backup": "backup copy.db",
    "backups": "backups",
    "check": "check",
    "codes": "codes off",
    "comfyui": "comfyui add --name portrait --price 0.03",
    "drill": "drill",
    "endpoints": "endpoints",
    "mcp-config": "mcp-config",
    "migrate": "migrate --check",
    "migrate-store": "migrate-store --to postgresql://db.example/gateway",
    "nodes": "nodes",
    "payers": "payers barred",
    "plugins": "plugins",
    "refunds": "refunds list",
    "restore": "restore copy.db",
    "serve": "serve",
    "tasks": "tasks",
    "tokens": "tokens list",
    "transfers": "transfers unused",
}


class StillChain:
    """A chain of one thousand blocks, five a second, the newest of now, without any events."""

    def __init__(self, settings):
        self.token = settings.chain.token

    async def head(self):
        return await self.block_at(1000)

    newest_head = safe_head = head

    def server_time(self):
        return None

    async def block_at(self, number):
        timestamp = int(time.time()) + (number - 1000) // 5
        return Block(number=number, hash=f"0x{number:064x}", timestamp=timestamp)

    async def receipt(self, tx_hash):
        block, is_known = await self.block_at(1000), tx_hash == f"0x{'ab' * 32}"
        logs = (Log(address=self.token, topics=(TRANSFER_TOPIC, ""), data=b"", index=0),)
        return Receipt(tx_hash=tx_hash, succeeded=is_known, block=block, logs=logs)

    async def call_uint(self, data, **_):
        return 0

    async def code(self, address, **_):
        return b""

    async def gas_balance(self, address):
        return 10**16

    async def transaction_count(self, address, **_):
        return 0

    async def fees(self):
        return 10**6, 10**6

    async def transfer_logs(self, wallet, **_):
        return []

    async def authorization_logs(self, sender, nonce, **_):
        return []

    def logs_limit(self):
        return None

    async def close(self):
        pass


async def _confined():
    return sandboxes._CONFINED


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Returns the operator's view of one line, from the prompt to the exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(check, "Web3Chain", StillChain)
    monkeypatch.setattr(session, "Web3Chain", StillChain)
    monkeypatch.setattr(sandboxes, "check_confinement", _confined)
    monkeypatch.setattr(sandboxes, "find_budget_bytes", lambda: 723_000_000)
    # The keystore's key derivation takes a second.
    monkeypatch.setattr(keys, "encrypt_key", lambda *_: "{}")

    def see(line, **settings):
        env = SETTINGS | settings
        result = CliRunner().invoke(main, shlex.split(line), env=env, prog_name="gateway")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        shown = "".join(f"{name}={value} " for name, value in settings.items())
        return _normal(
            f"$ {shown}gateway {line}\n{result.output}(exit code {result.exit_code})\n", tmp_path
        )

    yield see
    structlog.reset_defaults()
    # `serve` switches it off for its imports.
    gc.enable()


def _normal(text, folder):
    """Return a text without parts that vary between runs."""
    text = text.replace(str(folder), "<folder>").replace(VERSION, "<version>")
    text = text.replace(sys.executable, "<python>")
    text = re.sub(r"[\d,]+ (MB free|bytes)", r"<number> \1", text)
    text = re.sub(r"\d+ s (ahead of|behind)", "<number> s ahead of", text)
    text = re.sub(r"payments and \d+ s", "payments and <number> s", text)
    text = re.sub(r"\d+ ms", "<number> ms", text)
    text = re.sub(r"(gateway\.db\S*?)\d{8,}[-\dTZ]*", r"\1<time>", text)
    # OCR is an extra, which is not installed everywhere.
    text = text.replace("+rapidocr", "")
    return re.sub(r"\$argon2\S+", "<hash>", text)


def _helps(command, path=()):
    """Yield the words of `--help` for a command and its subcommands."""
    yield " ".join([*path, "--help"])
    if isinstance(command, click.Group) and path:
        for name, sub in sorted(command.commands.items()):
            yield from _helps(sub, (*path, name))


async def _fail_one_task():
    async with SqliteStore(put_database(Path("data", "gateway.db"))) as store:
        task = await leased(store, tx=1, id="task-1")
        await store.queue.fail(task, details="content_policy", error="No boats.", now=NOW)


async def _create_store():
    async with SqliteStore(put_database(Path("data", "gateway.db"))):
        pass


def _see_all(name, run):
    command = main.get_command(click.Context(main), name)
    yield from (run(line) for line in _helps(command, (name,)))
    if name in MISTAKEN:
        yield run(MISTAKEN[name], **NO_WALLET)
    Path("data").mkdir()
    asyncio.run(_create_store())
    for line in LINES[name]:
        if line == "...":
            asyncio.run(_fail_one_task())
        else:
            words, settings = (line, {}) if isinstance(line, str) else line
            yield run(words, **settings)


def _compare(name, seen):
    snapshot = SNAPSHOTS / f"{name}.txt"
    if "UPDATE_SNAPSHOTS" in os.environ:
        SNAPSHOTS.mkdir(exist_ok=True)
        snapshot.write_text(seen, "utf-8")
    assert snapshot.exists(), "there is no snapshot; run this with UPDATE_SNAPSHOTS=1"
    assert seen == snapshot.read_text("utf-8")


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_a_command_says_what_its_snapshot_says(name, run):
    _compare(name, "\n".join(_see_all(name, run)))


def test_the_list_of_commands_is_as_its_snapshot_and_imports_none(run, monkeypatch):
    monkeypatch.setattr(gateway.cli, "resolve_name", pytest.fail)
    _compare("gateway", "\n".join([run("--help"), run("--version"), run("nonsense")]))


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_the_list_has_the_first_sentence_of_each_help(name):
    command = main.get_command(click.Context(main), name)
    assert command.name == name
    assert gateway.cli._places()[name][1] == command.get_short_help_str(COLUMNS)


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_help_fits_80_columns_with_no_sentence_cut(name, run):
    command = main.get_command(click.Context(main), name)
    for line in ["--help", *_helps(command, (name,))]:
        _, *shown = run(line).splitlines()
        assert max(map(len, shown)) <= COLUMNS
        assert not [text for text in shown if text.endswith("...") and "Usage:" not in text]
