"""Tables of plugins: the files that a start applies, and the rules for them."""

import contextlib
import shutil
import sqlite3
import sys

import pytest

from gateway.errors import SettingsError
from gateway.store import SqliteStore
from gateway.store.plugin_tables import BUNDLED_TABLES
from gateway.store.sqlite import migrations, upgrade
from tests.plugin_tables import ORDERS, install_tables

__all__ = ["install_tables"]
MORE = "ALTER TABLE acme_orders ADD COLUMN sent_at REAL;"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "gateway.db"


async def open_once(path):
    async with SqliteStore(path):
        pass


def read(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def applied(path):
    """Return the files of plugins that are not bundled."""
    rows = read(path, "SELECT plugin, number FROM plugin_schemas ORDER BY plugin, number")
    return [row for row in rows if row[0] not in BUNDLED_TABLES]


async def test_a_start_applies_each_file_once_and_imports_no_plugin(path, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    await open_once(path)
    await open_once(path)
    assert applied(path) == [("acme", 1)]
    assert read(path, "SELECT * FROM acme_orders") == []
    assert "gateway_acme" not in sys.modules


async def test_a_later_version_of_the_plugin_adds_to_its_tables(path, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    await open_once(path)
    install_tables({"0001_orders.sql": ORDERS, "0002_sent.sql": MORE})
    await open_once(path)
    assert applied(path) == [("acme", 1), ("acme", 2)]
    assert read(path, "SELECT sent_at FROM acme_orders") == []


async def test_an_earlier_version_of_the_plugin_leaves_the_newer_tables(path, install_tables):
    install_tables({"0001_orders.sql": ORDERS, "0002_sent.sql": MORE})
    await open_once(path)
    install_tables({"0001_orders.sql": ORDERS})
    await open_once(path)
    assert applied(path) == [("acme", 1), ("acme", 2)]


async def test_the_tables_of_an_uninstalled_plugin_stay(path, install_tables, tmp_path):
    install_tables({"0001_orders.sql": ORDERS})
    await open_once(path)
    shutil.rmtree(tmp_path / "site" / "gateway_acme-1.dist-info")
    await open_once(path)
    assert applied(path) == [("acme", 1)]


async def test_a_file_that_fails_leaves_nothing_of_itself(path, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    await open_once(path)
    wrong = f"{MORE} INSERT INTO acme_nowhere VALUES (1);"
    install_tables({"0001_orders.sql": ORDERS, "0002_sent.sql": wrong})
    with pytest.raises(SettingsError, match=r"acme 0002: no such table: acme_nowhere"):
        await open_once(path)
    assert applied(path) == [("acme", 1)]
    assert [row[1] for row in read(path, "PRAGMA table_info(acme_orders)")] == ["task_id", "note"]


async def test_the_plan_names_the_files_and_changes_nothing(path, install_tables):
    await open_once(path)
    install_tables({"0001_orders.sql": ORDERS, "0002_sent.sql": MORE})
    assert upgrade.plan(path).of_plugins == ("acme 0001", "acme 0002")
    assert applied(path) == []


# -- the rules


def refusal(path):
    """Return the sentence that ends a start, and check that nothing of the plugin was created."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        with pytest.raises(SettingsError) as caught:
            migrations.migrate(db)
        assert db.execute("SELECT count(*) FROM plugin_schemas").fetchone() == (0,)
        names = db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'acme%'").fetchall()
        assert names == []
    return str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE orders (id INTEGER)",
        "CREATE TABLE acmeorders (id INTEGER)",
        'CREATE TABLE "payments" (id INTEGER)',
        "CREATE TABLE main.acme_orders (id INTEGER)",
        "CREATE TABLE IF NOT EXISTS acme_orders (id INTEGER)",
        "ALTER TABLE payments ADD COLUMN mine TEXT",
        "ALTER TABLE acme_orders RENAME TO orders",
        "DROP TABLE task_files",
        "DROP INDEX tasks_due",
        "CREATE INDEX acme_tasks ON tasks (slug)",
        "CREATE UNIQUE INDEX orders_once ON acme_orders (id)",
        "UPDATE payments SET state = 'settled'",
        "INSERT INTO claims VALUES ('x', 1)",
        "DELETE FROM tasks",
        "/* UPDATE acme_orders */ UPDATE tasks SET status = 'queued'",
        "UPDATE acme_orders SET note = ';'; DELETE FROM tasks",
        "CREATE TRIGGER acme_paid AFTER INSERT ON payments BEGIN SELECT 1; END",
        "PRAGMA user_version = 99",
        "COMMIT",
        "INSERT INTO acme_orders VALUES ($$'$$); DELETE FROM tasks; --$$')",
        "CREATE TABLE acme_orders (id INTEGER REFERENCES refunds (payment_id))",
        "CREATE TABLE acme_orders (id INTEGER REFERENCES payments (paid_tx))",
        "CREATE TABLE acme_orders (id INTEGER REFERENCES payments)",
        "CREATE TABLE acme_orders (id INTEGER, FOREIGN KEY (id) REFERENCES other_plugin (id))",
    ],
)
def test_a_file_changes_its_own_tables_only(path, install_tables, sql):
    install_tables({"0001_orders.sql": sql})
    assert "acme 0001 has: " in refusal(path)


async def test_a_file_may_refer_to_tasks_payments_and_its_own_and_fill_what_it_makes(
    path, install_tables
):
    install_tables(
        {
            "0001_orders.sql": """
                -- DROP TABLE payments;
                CREATE TABLE acme_orders (
                    id INTEGER PRIMARY KEY,
                    task_id TEXT NOT NULL REFERENCES tasks(id),
                    payment_id INTEGER REFERENCES payments ( id )
                );
                CREATE TABLE acme_lines (order_id INTEGER REFERENCES acme_orders (id), t TEXT);
                CREATE UNIQUE INDEX acme_lines_order ON acme_lines (order_id);
                INSERT INTO acme_lines VALUES (NULL, 'DROP TABLE tasks; it''s a text');
                DELETE FROM acme_lines WHERE t = '';
                UPDATE acme_lines SET order_id = NULL;
                ALTER TABLE acme_lines RENAME TO acme_items;
                DROP INDEX acme_lines_order;
            """
        }
    )
    await open_once(path)
    assert read(path, "SELECT t FROM acme_items") == [("DROP TABLE tasks; it's a text",)]


@pytest.mark.parametrize("name", ["Acme", "acme-shop", "acme2", "_acme", "a.b"])
def test_a_name_has_small_letters_only(path, install_tables, name):
    install_tables({"0001_orders.sql": ORDERS}, name=name)
    assert "only lower-case letters" in refusal(path)


@pytest.mark.parametrize("name", ["task", "payment", "sent", "plugin"])
def test_a_name_begins_no_table_of_the_gateway(path, install_tables, name):
    install_tables({"0001_orders.sql": ORDERS}, name=name)
    assert "is already taken" in refusal(path)


def test_a_name_begins_no_name_of_another_plugin(path, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    install_tables({}, name="acme_mail", package="gateway_acme_mail")
    assert "acme_mail is already taken" in refusal(path)


def test_two_plugins_have_not_the_same_name(path, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    install_tables({"0001_orders.sql": ORDERS}, package="gateway_acme_fork")
    assert "Two plugins use the table prefix acme" in refusal(path)


@pytest.mark.parametrize("file", ["orders.sql", "1_orders.sql", "0001-orders.sql", "0001_b.sql"])
def test_a_file_has_a_number_of_its_own(path, install_tables, file):
    files = {file: MORE} if file != "0001_b.sql" else {"0001_a.sql": ORDERS, file: MORE}
    install_tables(files)
    assert "a unique number" in refusal(path)


async def test_a_number_below_one_that_was_applied_is_refused(path, install_tables):
    install_tables({"0001_orders.sql": ORDERS, "0003_sent.sql": MORE})
    await open_once(path)
    other = "CREATE TABLE acme_late (id INTEGER);"
    install_tables({"0001_orders.sql": ORDERS, "0002_late.sql": other, "0003_sent.sql": MORE})
    with pytest.raises(SettingsError, match="acme 0002 is new, but 0003 was already applied"):
        await open_once(path)
    assert applied(path) == [("acme", 1), ("acme", 3)]


def test_both_databases_have_the_same_files(path, install_tables, tmp_path):
    install_tables({"0001_orders.sql": ORDERS})
    (tmp_path / "site/gateway_acme/migrations/postgres/0001_orders.sql").unlink()
    assert "needs the same migrations" in refusal(path)


def test_a_package_that_is_not_there_is_named(path, install_tables, tmp_path):
    install_tables({"0001_orders.sql": ORDERS})
    shutil.rmtree(tmp_path / "site/gateway_acme")
    assert "gateway_acme.migrations with the migrations of acme" in refusal(path)
