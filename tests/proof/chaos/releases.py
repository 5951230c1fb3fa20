"""Releases of the gateway that a node may be of: the present one, one from git, and a next one."""

import subprocess
import tarfile
from pathlib import Path

import attrs

from tests.proof.process.gateway_process import ROOT


@attrs.frozen(kw_only=True)
class Release:
    """Where a release's source lies, and what runs at its nodes' start before all else."""

    folder: Path
    patch: str = ""


PRESENT = Release(folder=ROOT)

# What only adds: to every table that a sale touches, and so to what statements read whole.
_ADDS = """
ALTER TABLE payments ADD COLUMN of_tomorrow TEXT;
ALTER TABLE tasks ADD COLUMN of_tomorrow BIGINT NOT NULL DEFAULT 7;
ALTER TABLE sent_transactions ADD COLUMN of_tomorrow TEXT;
ALTER TABLE claims ADD COLUMN of_tomorrow DOUBLE PRECISION;
ALTER TABLE nodes ADD COLUMN of_tomorrow TEXT;
ALTER TABLE roles ADD COLUMN of_tomorrow TEXT;
CREATE TABLE of_tomorrow (payment_id BIGINT PRIMARY KEY REFERENCES payments (id));
CREATE INDEX of_tomorrow_tasks ON tasks (of_tomorrow);
"""
_NEXT = """
import gateway.version

gateway.version.VERSION += "+next"

from gateway_nodes.postgres import migrations

_present = migrations.migrations

def _with_next():
    known = _present()
    return [*known, (known[-1][0] + 1, {sql!r})]

migrations.migrations = _with_next
"""
NEXT = attrs.evolve(PRESENT, patch=_NEXT.format(sql=_ADDS))

# A next release, and a present one, that break the rules of an upgrade. The verdict must catch
# each. The first only says that it adds: the release before does not find its column.
_RENAMING = attrs.evolve(
    PRESENT,
    patch=_NEXT.format(sql="ALTER TABLE tasks RENAME COLUMN leased_by TO held_by")
    + """
from gateway_nodes.postgres import session

_translate = session._translate
session._translate = lambda sql: _translate(sql.replace("leased_by", "held_by"))
""",
)
# It keeps to statements that were prepared before the schema changed.
_STALE = attrs.evolve(
    PRESENT,
    patch="""
from gateway_nodes.postgres import pool

class Never(Exception):
    pass

pool._LOST_RACE = tuple(one for one in pool._LOST_RACE if one is not pool._STALE_STATEMENT)
pool._STALE_STATEMENT = Never
""",
)
UPGRADE_MUTANTS = {"renames-a-column": (PRESENT, _RENAMING), "stale-statements": (_STALE, NEXT)}


def release_of(ref: str, folder: Path) -> Release:
    """Return the release of a commit or tag, whose source is written into a folder.

    Raises `CalledProcessError` where git does not know it.
    """
    packed = folder / "release.tar"
    command = ["git", "archive", f"--output={packed}", ref, "gateway", "providers", "plugins"]
    subprocess.run(command, cwd=ROOT, check=True)
    with tarfile.open(packed) as files:
        files.extractall(folder / "release", filter="data")
    return Release(folder=folder / "release")
