"""`gateway migrate` with plugins' tables; its other output is in its snapshot."""

import contextlib
import sqlite3

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway_testing.facts import WALLET
from tests.migrated_databases import put_database
from tests.plugin_tables import ORDERS, install_tables

__all__ = ["install_tables"]


@pytest.fixture
def run(tmp_path):
    settings = {
        "GATEWAY_WALLET": WALLET,
        "GATEWAY_SETTLEMENT_KEY": "1" * 64,
        "GATEWAY_DATA_DIR": str(tmp_path),
        "GATEWAY_PLUGINS_DISABLED": "gateway_acme",
    }
    put_database(tmp_path / "gateway.db")

    def see(*words):
        result = CliRunner().invoke(main, ["migrate", *words], env=settings, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    return see


def applied(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "gateway.db")) as db:
        return db.execute(
            "SELECT plugin, number FROM plugin_schemas WHERE plugin = 'acme'"
        ).fetchall()


def test_a_check_names_the_files_of_plugins_and_applies_none(run, tmp_path, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    assert "migrates a plugin: acme 0001" in run("--check")
    assert applied(tmp_path) == []


def test_the_tables_of_a_disabled_plugin_are_made(run, tmp_path, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    assert run().endswith("Done.\n")
    assert applied(tmp_path) == [("acme", 1)]
    assert "There is nothing to migrate" in run()
