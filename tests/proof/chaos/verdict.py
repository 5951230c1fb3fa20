"""The verdict on the money, as for one gateway, and on faults that only several nodes can have."""

from collections import defaultdict
from collections.abc import Iterable

import attrs

from tests.conftest import PNG
from tests.proof.chaos.nodes import Absence, Cluster
from tests.proof.crashes.clients import Memory
from tests.proof.crashes.verdict import ROWS, Verdict, judge
from tests.proof.process.gateway_process import until

_NONCES = """SELECT signer, nonce, count(DISTINCT payment_id) AS n FROM sent_transactions
             GROUP BY signer, nonce HAVING count(DISTINCT payment_id) > 1"""


@attrs.frozen
class ChaosVerdict:
    """The verdict on the money and on the nodes."""

    money: Verdict
    stolen: list[str]  # tasks that a node began while another was at them
    reused: list[str]  # nonces that were given to two payments
    unfetched: list[str]  # completed tasks whose buyers cannot fetch the outputs

    @property
    def problems(self) -> list[str]:
        """All problems, in sentences."""
        return [*self.money.problems, *self.stolen, *self.reused, *self.unfetched]


@attrs.frozen
class Note:
    """The start or end of an attempt in a process; `at` in Unix seconds."""

    task_id: str
    what: str
    pid: int
    at: float


def judge_cluster(cluster: Cluster, memory: Memory) -> ChaosVerdict:
    """Compare the database, the chain, the bucket and the provider's records."""
    notes = read_notes((cluster.folder / "calls").read_text().splitlines())
    begun = [note.task_id for note in notes if note.what == "begins"]
    money = judge(cluster.rows(ROWS), cluster.chain, memory, begun, cluster.read_output)
    nonces = [
        f"nonce {row['nonce']} was given to {row['n']} payments" for row in cluster.rows(_NONCES)
    ]
    stolen = find_stolen(notes, cluster.absences)
    return ChaosVerdict(money, stolen, nonces, _find_unfetched(cluster))


def _find_unfetched(cluster: Cluster) -> list[str]:
    """Fetch every output of every completed task as its buyer would."""
    cluster.revive()
    for node in cluster.nodes:
        until(node._is_up)
    found = []
    for row in cluster.rows("SELECT id FROM tasks WHERE status = 'completed' ORDER BY id"):
        try:
            sizes = cluster.fetch_outputs(row["id"])
        except (OSError, KeyError, TypeError) as error:
            found.append(f"task {row['id']}: its outputs cannot be fetched: {error!r}")
        else:
            if sizes != [len(PNG)]:
                found.append(f"task {row['id']} has outputs of {sizes} bytes")
    return found


def read_notes(lines: Iterable[str]) -> list[Note]:
    """Parse the provider's records, in order of time."""
    parts = [line.split() for line in lines]
    notes = [Note(task_id, what, int(pid), float(at)) for task_id, what, pid, at in parts]
    return sorted(notes, key=lambda note: note.at)


def find_stolen(notes: Iterable[Note], absences: Iterable[Absence]) -> list[str]:
    """Return each task that was started while another node worked on it.

    A node that was killed or paused for a while had lost it rightly.
    """
    absent = defaultdict(list)
    for absence in absences:
        absent[absence.pid].append(absence)
    at_work: dict[str, Note] = {}
    stolen = []
    for note in notes:
        before = at_work.get(note.task_id)
        if note.what == "ends":
            if before is not None and before.pid == note.pid:
                del at_work[note.task_id]
            continue
        if before is not None and not _was_absent(absent[before.pid], before.at, note.at):
            stolen.append(
                f"task {note.task_id} was begun by {note.pid}, {note.at - before.at:.1f} s after "
                f"{before.pid} began it, which was still at it"
            )
        at_work[note.task_id] = note
    return stolen


def _was_absent(absences: Iterable[Absence], since: float, until: float) -> bool:
    """Whether a process could do nothing at some time in between."""
    return any(one.since < until and one.until > since for one in absences)
