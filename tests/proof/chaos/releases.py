"""Releases of the gateway for a node: the current one, one from git, and a next one."""

import subprocess
import tarfile
from pathlib import Path

import attrs

from tests.proof.process.gateway_process import ROOT


@attrs.frozen(kw_only=True)
class Release:
    """A release's source folder, and code that runs first when its nodes start."""

    folder: Path
    patch: str = ""


PRESENT = Release(folder=ROOT)

# A migration that only adds: to every table of a sale, and thus to whatever statements read whole.
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
# It also sells an endpoint more.
_NEXT = """
import os

os.environ["SLOW_SELLS_NEWER"] = "1"

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

# A next release, and a current one, that break the rules of upgrades. The verdict must catch each.
# The first only claims to add: the release before does not find its column.
_RENAMING = attrs.evolve(
    PRESENT,
    patch=_NEXT.format(sql="ALTER TABLE tasks RENAME COLUMN leased_by TO held_by")
    + """
from gateway_nodes.postgres import session

_translate = session._translate
session._translate = lambda sql: _translate(sql.replace("leased_by", "held_by"))
""",
)
# Its nodes lease tasks of endpoints that they do not have, and fail them.
_LEASES_ALL = attrs.evolve(
    PRESENT,
    patch="""
from gateway.store.tasks import SqlQueue

def _without_known(method):
    return lambda self, *given, known=None, **named: method(self, *given, **named)

SqlQueue.lease = _without_known(SqlQueue.lease)
SqlQueue.next_due = _without_known(SqlQueue.next_due)
""",
)
UPGRADE_MUTANTS = {
    "renames-a-column": (PRESENT, _RENAMING),
    "leases-all": (_LEASES_ALL, NEXT),
}


def release_of(ref: str, folder: Path) -> Release:
    """Write the source of a commit or tag into a folder, and return its release.

    Raises `CalledProcessError` if git does not know it.
    """
    packed = folder / "release.tar"
    command = ["git", "archive", f"--output={packed}", ref, "gateway", "providers", "plugins"]
    subprocess.run(command, cwd=ROOT, check=True)
    with tarfile.open(packed) as files:
        files.extractall(folder / "release", filter="data")
    return Release(folder=folder / "release")
