"""Copies a gateway's SQLite database into an empty PostgreSQL, and verifies the copy.

Every function runs in the caller's transaction, so that the target gets everything or nothing.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from gateway.domain import StoredResult
from gateway.errors import SettingsError
from gateway.store.rows import dump, load
from gateway.store.sql import Connection
from gateway_nodes.store_migration.notes import MIGRATED_FROM

if TYPE_CHECKING:
    from gateway_nodes.store_migration.target import Target

# Rows of `meta` about one database alone, which are not copied.
_OWN_META = ("readable_by", "schema_base", "moving_to", "move_id")
_OWN_META_END = "_before_move"
_ROWS_AT_ONCE = 1_000
_TASKS_AT_ONCE = 100
_DIGEST_RANGE = 1 << 256


@attrs.frozen(kw_only=True)
class Table:
    """A table and its columns, in the same order for both databases."""

    name: str
    columns: tuple[str, ...]

    @property
    def listed(self) -> str:
        """The columns as SQL, quoted because one is a reserved word in PostgreSQL."""
        return ", ".join(f'"{column}"' for column in self.columns)


@attrs.define
class Tally:
    """A table's number of rows, and a digest that does not depend on their order."""

    rows: int = 0
    digest: int = 0

    def add(self, row: Sequence[Any]) -> None:
        """Add a row to count and digest."""
        self.rows += 1
        self.digest = (self.digest + _digest(row)) % _DIGEST_RANGE


@attrs.frozen(kw_only=True)
class Copied:
    """The counts of a finished copy."""

    # By table.
    rows: dict[str, int]

    # Texts that lost a NUL character, which PostgreSQL cannot store.
    cleaned: int


def tables_of(source: Connection) -> list[Table]:
    """Return the tables of an SQLite database, each after those that it references.

    `plugin_schemas` is left out: the target records its own migrations.
    """
    names = [
        row[0]
        for row in source.execute(
            """SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'
               AND name <> 'plugin_schemas' ORDER BY name"""
        )
    ]
    wanted = {
        name: {row[2] for row in source.execute(f'PRAGMA foreign_key_list("{name}")')} - {name}
        for name in names
    }
    ordered: list[str] = []
    while len(ordered) < len(names):
        ordered += [name for name in names if name not in ordered and wanted[name] <= {*ordered}]
    return [Table(name=name, columns=_columns_of(source, name)) for name in ordered]


def _columns_of(source: Connection, table: str) -> tuple[str, ...]:
    return tuple(row[1] for row in source.execute(f'PRAGMA table_info("{table}")'))


def count(db: Connection, table: Table) -> int:
    """Count the rows of a table."""
    return int(db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0])  # noqa: S608 - a name


def check_target(target: "Target", tables: Sequence[Table]) -> None:
    """Lock the target's tables, and check that they match and are empty.

    A gateway that starts on the target waits for the end of the migration. Raises `SettingsError`.
    """
    columns = _target_columns(target)
    for table in tables:
        if table.name not in columns:
            raise SettingsError(
                f"The other database has no table {table.name}. If it is a plugin's, install the "
                "plugin and run this again."
            )
        if columns[table.name] != {*table.columns}:
            raise SettingsError(
                f"The table {table.name} has other columns there than here. Use this release's "
                "`gateway migrate-store` and a database that no other release has prepared."
            )
    target.execute(f"LOCK TABLE {_listed(tables)} IN EXCLUSIVE MODE")
    for table in tables:
        if _has_rows(target, table):
            raise SettingsError(
                f"The target database is not empty: its table {table.name} has rows. Name an "
                "empty one; a gateway that was started on it once has left its own secrets there."
            )


def _target_columns(target: "Target") -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for table, column in target.execute(
        """SELECT table_name, column_name FROM information_schema.columns
           WHERE table_schema = current_schema()"""
    ):
        found.setdefault(table, set()).add(column)
    return found


def _listed(tables: Iterable[Table]) -> str:
    return ", ".join(table.name for table in tables)


def _has_rows(target: "Target", table: Table) -> bool:
    if table.name == "meta":
        return any(not _is_own(row[0]) for row in target.execute("SELECT key FROM meta"))
    found = target.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone()  # noqa: S608 - a table's name
    return found is not None


def origin_of(target: "Target") -> str | None:
    """Return the id of the migration that filled the target, or None.

    Waits for a migration that PostgreSQL is still committing although its process has died.
    """
    target.execute("LOCK TABLE meta IN SHARE MODE")
    row = target.execute("SELECT value FROM meta WHERE key = ?", (MIGRATED_FROM,)).fetchone()
    return None if row is None else str(row[0])


def copy(source: Connection, target: "Target", tables: Sequence[Table], move_id: str) -> Copied:
    """Copy every row, and verify the copy; call `check_target` first.

    Raises `SettingsError` if the databases differ; the caller then rolls back.
    """
    # Otherwise triggers would write each payment's events again. Foreign keys are still checked.
    for table in tables:
        target.execute(f"ALTER TABLE {table.name} DISABLE TRIGGER USER")
    cleaner = _Cleaner()
    tallies = {table.name: _copy_table(source, target, table, cleaner) for table in tables}
    for table in tables:
        target.execute(f"ALTER TABLE {table.name} ENABLE TRIGGER USER")
    _continue_numbers(target)
    _compare(source, target, tables, tallies)
    target.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (MIGRATED_FROM, move_id))
    return Copied(
        rows={name: tally.rows for name, tally in tallies.items()}, cleaned=cleaner.cleaned
    )


@attrs.define
class _Cleaner:
    """Removes NUL characters from texts, and counts these texts."""

    cleaned: int = 0

    def clean(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """Return a row that PostgreSQL can store."""
        dirty = [value for value in row if isinstance(value, str) and "\0" in value]
        self.cleaned += len(dirty)
        if not dirty:
            return tuple(row)
        return tuple(v.replace("\0", "") if isinstance(v, str) else v for v in row)


def _copy_table(source: Connection, target: "Target", table: Table, cleaner: _Cleaner) -> Tally:
    tally = Tally()
    with target.raw.cursor().copy(f"COPY {table.name} ({table.listed}) FROM STDIN") as there:
        for found in source.execute(f"SELECT {table.listed} FROM {table.name}"):  # noqa: S608 - names
            row = cleaner.clean(found)
            if not (table.name == "meta" and _is_own(row[0])):
                tally.add(row)
                there.write_row(row)
    return tally


def _is_own(key: str) -> bool:
    return key in _OWN_META or key.endswith(_OWN_META_END)


def _continue_numbers(target: "Target") -> None:
    """Set each identity sequence to the highest copied number."""
    numbered = target.execute(
        """SELECT table_name, column_name FROM information_schema.columns
           WHERE table_schema = current_schema() AND is_identity = 'YES'"""
    ).fetchall()
    for table, column in numbered:
        # For an empty table this is NULL, and setval does nothing.
        highest = f"(SELECT max({column}) FROM {table})"  # noqa: S608 - names
        target.execute(f"SELECT setval(pg_get_serial_sequence(?, ?), {highest})", (table, column))


_SUMS = (
    """SELECT state, count(*), sum(price_units), coalesce(sum(paid_units), 0) FROM payments
       GROUP BY state ORDER BY state""",
    """SELECT status, count(*), coalesce(sum(cost_micros), 0) FROM tasks
       GROUP BY status ORDER BY status""",
    "SELECT count(*), coalesce(sum(amount_units), 0) FROM refunds",
)


def _compare(
    source: Connection, target: "Target", tables: Sequence[Table], tallies: dict[str, Tally]
) -> None:
    """Raise `SettingsError` unless both databases have the same rows and the same sums."""
    for table in tables:
        there = Tally()
        for row in _rows_there(target, table):
            if not (table.name == "meta" and _is_own(row[0])):
                there.add(row)
        if there != tallies[table.name]:
            raise SettingsError(
                f"The rows of {table.name} are not the same after the copy ({there.rows} there, "
                f"{tallies[table.name].rows} here). Nothing was migrated."
            )
    for sql in _SUMS:
        here, there_too = (_plain(db.execute(sql)) for db in (source, target))
        if here != there_too:
            raise SettingsError(
                f"Sums differ after the copy ({there_too} there, {here} here). Nothing was "
                "migrated."
            )


def _plain(rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in rows]


def _rows_there(target: "Target", table: Table) -> Iterator[Sequence[Any]]:
    """Yield the rows of a table in PostgreSQL, in batches: it may not fit into memory."""
    selected = f"SELECT {table.listed} FROM {table.name}"  # noqa: S608 - names
    target.execute(f"DECLARE moved CURSOR FOR {selected}")
    while rows := target.execute(f"FETCH {_ROWS_AT_ONCE} FROM moved").fetchall():
        yield from rows
    target.execute("CLOSE moved")


def _digest(row: Sequence[Any]) -> int:
    """Return the SHA-256 of a row's `repr`, which is exact for every type, as a number."""
    text = repr(tuple(row)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest(), "big")


# -- outputs on this machine's disk, which other nodes cannot read


@attrs.frozen(kw_only=True)
class Finished:
    """A task with stored outputs, and its result."""

    task_id: str
    result: StoredResult


def kept_results(db: Connection, after: str) -> list[Finished]:
    """Return the next batch of tasks with outputs, ordered by id; `after` is "" for the first."""
    rows = db.execute(
        """SELECT id, result FROM tasks
           WHERE id > ? AND result IS NOT NULL AND outputs_gone = 0 ORDER BY id LIMIT ?""",
        (after, _TASKS_AT_ONCE),
    )
    return [Finished(task_id=row[0], result=load(row[1], StoredResult)) for row in rows]


def replace_result(db: Connection, task_id: str, result: StoredResult) -> None:
    """Point a task to its copied outputs."""
    db.execute("UPDATE tasks SET result = ? WHERE id = ?", (dump(result), task_id))
