"""`python -m tests.proof.crashes.power`: power cuts at random moments lose nothing acknowledged.

The production store commits under load while power.c records every write to the disk. From the
record come images of the disk at random moments: all synced data, and some of the unsynced. The
production store opens each, and everything acknowledged before that moment must be in it.
"""

import asyncio
import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import click

from gateway.store.sqlite.store import SqliteStore
from tests.proof.crashes.power_disk import Disk, Record, records

_SOURCE = Path(__file__).with_name("power.c")
_ROUNDS = 25  # of each of the child's clients: about 2,000 transactions
_CHILD_S = 300
_TORN = 3  # images of each moment with some of what was not synced
FACTS = """SELECT 'payment ' || t.id || ' ' || e.new_state FROM payment_events e
               JOIN tasks t ON t.payment_id = e.payment_id
           UNION SELECT 'task ' || id || ' ' || status FROM tasks
           UNION SELECT 'claim ' || key FROM claims"""
_HALF_DONE = """SELECT (SELECT count(*) FROM payments
                        WHERE id NOT IN (SELECT payment_id FROM claims)
                           OR id NOT IN (SELECT payment_id FROM tasks))"""


class CannotRecord(Exception):
    """This machine cannot run the recorder; the message is the reason."""


@attrs.frozen
class Recording:
    """A child's writes to its disk, and its acknowledgements."""

    log: Path
    told: list[tuple[int, str]]  # (size of the log, fact)

    def acknowledged_by(self, moment: int) -> set[str]:
        return {fact for at, fact in self.told if at <= moment}


@attrs.frozen
class Image:
    """The disk after one power cut."""

    moment: int  # bytes of the log
    kind: str
    told: int
    lost: list[str]
    damage: str


def record(folder: Path, *, synchronous: str = "FULL", rounds: int = _ROUNDS) -> Recording:
    """Let a child commit in a folder under the recorder.

    Raises `CannotRecord` without a C compiler, or if SQLite is linked into Python itself.
    """
    data = folder / "data"
    data.mkdir(parents=True)
    log = folder / "disk.log"
    environment = os.environ | {
        "LD_PRELOAD": str(_compiled(folder)),
        "POWER_FOLDER": str(data),
        "POWER_LOG": str(log),
        "PYTHONPATH": os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path),
    }
    command = [sys.executable, "-m", "tests.proof.crashes.power_child", str(data), str(rounds)]
    child = subprocess.run(
        [*command, synchronous],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=_CHILD_S,
    )
    if child.returncode != 0:
        raise RuntimeError(f"the child failed:\n{child.stderr}")
    logged = [line.split(" ", 1) for line in child.stdout.splitlines()]
    if not log.stat().st_size:
        raise CannotRecord("this Python's SQLite does not call the C library where we stand")
    return Recording(log, [(int(at), fact) for at, fact in logged])


def _compiled(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if sys.platform != "linux":
        raise CannotRecord("only Linux has LD_PRELOAD and /proc")
    if compiler is None:
        raise CannotRecord("there is no C compiler (cc)")
    library = folder / "power.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-o", str(library), str(_SOURCE)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True, capture_output=True)
    return library


def cut(recording: Recording, count: int, chance: random.Random, place: Path) -> Iterator[Image]:
    """Cut the power at random moments, half of them right after an acknowledgement."""
    acknowledged = sorted({at for at, _ in recording.told})
    moments = chance.sample(acknowledged, count - count // 2)
    moments += [chance.randrange(recording.log.stat().st_size) for _ in range(count // 2)]
    disk, left = Disk(), sorted(moments)
    for step in records(recording.log):
        while left and step.end > left[0]:
            yield from _images(recording, disk, left.pop(0), chance, place)
        disk.do(step)
    for moment in left:
        yield from _images(recording, disk, moment, chance, place)


def _images(
    recording: Recording, disk: Disk, moment: int, chance: random.Random, place: Path
) -> Iterator[Image]:
    must = recording.acknowledged_by(moment)
    yield _judged(moment, "synced only", must, disk.image(), place)
    for _ in range(_TORN):
        yield _judged(moment, "some more, torn", must, disk.image(chance), place)


def _judged(moment: int, kind: str, must: set[str], files: dict[str, bytes], place: Path) -> Image:
    """Open an image with the production store and check everything acknowledged."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, content in files.items():
        (place / name).write_bytes(content)
    path = place / "gateway.db"
    asyncio.run(_open_once(path))
    with contextlib.closing(sqlite3.connect(path)) as db:
        damage = _damage(db)
        held = {row[0] for row in db.execute(FACTS)}
    return Image(moment, kind, len(must), sorted(must - held), damage)


async def _open_once(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.ping()


def _damage(db: sqlite3.Connection) -> str:
    """Return the damage of the database; empty if there is none."""
    (health,) = db.execute("PRAGMA integrity_check").fetchone()
    strays = db.execute("PRAGMA foreign_key_check").fetchall()
    (half_done,) = db.execute(_HALF_DONE).fetchone()
    said = {health: health != "ok", f"{len(strays)} strays": bool(strays)}
    said[f"{half_done} half-done payments"] = bool(half_done)
    return ", ".join(words for words, is_wrong in said.items() if is_wrong)


def steps(recording: Recording) -> Sequence[Record]:
    """Return all recorded writes."""
    return list(records(recording.log))


@click.command()
@click.option("--images", default=25, show_default=True, help="Moments at which the power goes.")
@click.option("--seed", type=int, help="Of the dice; a new one without.")
@click.option("--synchronous", default="FULL", show_default=True, help="NORMAL shows a loss.")
def main(images: int, seed: int | None, synchronous: str) -> None:
    """Cut the power, print a table, and exit with 1 if anything was lost."""
    seed = random.randrange(2**32) if seed is None else seed
    click.echo(f"seed {seed}, synchronous={synchronous}")
    with tempfile.TemporaryDirectory() as folder:
        recording = record(Path(folder), synchronous=synchronous)
        click.echo(_load(recording))
        left = list(cut(recording, images, random.Random(seed), Path(folder) / "image"))
    wrong = _table(left)
    click.echo(f"{images} moments, {len(left)} images; with a loss or damage: {wrong}")
    if wrong:
        raise SystemExit(1)


def _table(images: list[Image]) -> int:
    """Print a row for each moment; returns the number of wrong images."""
    click.echo(f"{'moment':>12} {'told':>6} {'lost':>6} {'lost in torn ones':>18} damage")
    for moment in dict.fromkeys(image.moment for image in images):
        synced, *torn = [image for image in images if image.moment == moment]
        lost = ", ".join(str(len(image.lost)) for image in torn)
        damage = ", ".join(filter(None, (image.damage for image in (synced, *torn))))
        row = f"{moment:12} {synced.told:6} {len(synced.lost):6} {lost:>18}"
        click.echo(f"{row} {damage or 'none'}")
    return sum(bool(image.lost or image.damage) for image in images)


def _load(recording: Recording) -> str:
    done = [step.kind for step in steps(recording)]
    return (
        f"{len(recording.told)} facts acknowledged; {done.count('W')} writes, "
        f"{done.count('S')} syncs, {done.count('D')} syncs of the folder"
    )


if __name__ == "__main__":
    main()
