"""Commands for SQLite files, and `gateway check`, with a PostgreSQL database."""

import json
import re
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.settings import load_settings
from gateway_check.database import find_checks
from gateway_nodes.postgres.store import PostgresStore

SETTINGS = {
    "GATEWAY_BASE_URL": "http://gateway.test",
    "GATEWAY_WALLET": "0x" + "b2" * 20,
    "GATEWAY_SETTLEMENT_KEY": "1" * 64,
    "GATEWAY_OUTPUTS_URL": "s3://outputs",
    "GATEWAY_OUTPUTS_ACCESS_KEY_ID": "key",
    "GATEWAY_OUTPUTS_SECRET_ACCESS_KEY": "hidden",
}


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """The environment of a node; returns its data folder."""
    monkeypatch.chdir(tmp_path)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GATEWAY_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.mark.parametrize(
    "words", [("backup", "copy.db"), ("backups",), ("drill",), ("restore", "latest"), ("migrate",)]
)
def test_what_is_for_a_file_says_so_and_makes_none(environment, monkeypatch, words):
    monkeypatch.setenv("GATEWAY_DATABASE_URL", "postgresql://gateway:hunter2@127.0.0.1:9/gateway")
    result = CliRunner().invoke(main, list(words))
    assert (result.exit_code, "for SQLite" in result.output) == (1, True), result.output
    assert result.output.count("\n") == 1
    assert "hunter2" not in result.output
    assert not environment.exists()


@pytest.mark.parametrize("words", [("plugins", "--no-health", "--json"), ("endpoints", "--json")])
def test_lists_go_on_without_the_pages_values_if_the_server_is_down(
    environment, monkeypatch, words
):
    monkeypatch.setenv("GATEWAY_DATABASE_URL", "postgresql://gateway:hunter2@127.0.0.1:9/gateway")
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)
    assert "What is set on the page is not shown" in result.stderr
    assert "hunter2" not in result.output


async def test_a_check_has_rows_for_the_server(environment, monkeypatch, database_url):
    monkeypatch.setenv("GATEWAY_DATABASE_URL", database_url)
    rows = dict(await find_checks(load_settings()))
    assert set(rows) == {
        "database",
        "database sessions",
        "database schema",
        "database clock",
        "database durability",
        "database nodes",
        "settlement keys",
        "open payments",
    }
    assert await rows["database nodes"]() == "none runs now"
    assert (await rows["database"]()).startswith("PostgreSQL ")
    # The tests' own server is not durable.
    with pytest.raises(ValueError, match="in a power cut"):
        await rows["database durability"]()


async def test_without_a_server_it_has_one_row(environment):
    rows = dict(await find_checks(load_settings()))
    assert set(rows) == {"database"}
    assert (await rows["database"]()).startswith("none yet: ")


async def test_the_statements_for_a_database_that_has_forgotten_date_it_anew(database_url):
    page = (Path(__file__).parents[3] / "docs" / "scale.md").read_text("utf-8")
    (statements,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    async with PostgresStore(database_url) as store:
        assert await store.meta("born_at", lambda: "1.0") == "1.0"
        assert await store.meta("floor_block", lambda: "7") == "7"
        assert await store.meta("file_secret", lambda: "kept") == "kept"
        with psycopg.connect(database_url, autocommit=True) as db:
            db.execute(
                """INSERT INTO operator_tokens (name, hash, scope, created_at, expires_at)
                   VALUES ('cron', 'h', 'read', 1, 2)"""
            )
            db.execute(statements)
            revoked = db.execute("SELECT revoked_at FROM operator_tokens").fetchone()
        assert revoked[0] > 1
        assert await store.meta("born_at", lambda: "2.0") == "2.0"
        assert await store.meta("floor_block", lambda: "8") == "8"
        assert await store.meta("file_secret", lambda: "another") == "kept"
