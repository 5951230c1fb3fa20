"""Compares the database with the chain, and both with the clients' responses."""

import contextlib
import hashlib
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import attrs

from gateway.domain.eip3009 import AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC, topic
from gateway.tasks.outcome import MAX_RESTARTS
from tests.conftest import WALLET
from tests.proof.crashes.clients import PRICE, Memory, Purchase
from tests.proof.crashes.remote_chain import RemoteChain

Place = tuple[str, int]  # transaction and log index
ROWS = """SELECT t.id, t.status, t.result, p.state, p.flow, p.paid_tx, p.paid_log_index, p.payer
          FROM payments p LEFT JOIN tasks t ON t.payment_id = p.id"""
_OWED = ("refund_due", "refunded")
_PAID = ("settled", *_OWED)
# Four attempts of a task, and the attempts that a death ended, which do not count.
_MAX_CALLS = 4 + MAX_RESTARTS
_ENDED = {"completed": ("settled",), "failed": _OWED, "dropped": ("released",)}


@attrs.define
class Verdict:
    """The problems, in sentences, and the statistics."""

    lost: list[str] = attrs.field(factory=list)  # paid and not served, or told and forgotten
    doubled: list[str] = attrs.field(factory=list)  # one payment sold twice, or charged twice
    unpaid: list[str] = attrs.field(factory=list)  # generated for nothing
    stuck: list[str] = attrs.field(factory=list)  # not ended
    payments: Counter = attrs.field(factory=Counter)
    purchases: int = 0
    transfers: int = 0

    @property
    def problems(self) -> list[str]:
        kinds = ("lost", "doubled", "unpaid", "stuck")
        return [f"{kind}: {said}" for kind in kinds for said in getattr(self, kind)]


@attrs.frozen
class Transfer:
    """A transfer to the wallet on the chain."""

    place: Place
    sender: str
    units: int
    nonce: str | None  # of the authorization that it settles


def compare(folder: Path, chain: RemoteChain, memory: Memory) -> Verdict:
    """Judge a gateway with a data folder."""
    with contextlib.closing(sqlite3.connect(folder / "data" / "gateway.db")) as db:
        db.row_factory = sqlite3.Row
        (health,) = db.execute("PRAGMA integrity_check").fetchone()
        rows = db.execute(ROWS).fetchall()

    def read_output(key: str) -> bytes | None:
        path = folder / "data" / "outputs" / key
        return path.read_bytes() if path.is_file() else None

    calls = (folder / "calls").read_text().splitlines()
    verdict = judge(rows, chain, memory, calls, read_output)
    if health != "ok":
        verdict.lost.append(f"the database is damaged: {health}")
    return verdict


def judge(
    rows,
    chain: RemoteChain,
    memory: Memory,
    calls: list[str],
    read_output: Callable[[str], bytes | None],
) -> Verdict:
    """Compare the rows of ROWS with the chain, the buyers, the provider's calls and the outputs."""
    transfers = find_transfers(chain)
    verdict = Verdict(purchases=len(memory.purchases), transfers=len(transfers))
    _judge_rows(verdict, rows, transfers)
    _judge_purchases(verdict, rows, transfers, memory)
    _judge_outputs(verdict, rows, read_output)
    _judge_calls(verdict, rows, calls)
    return verdict


def find_transfers(chain: RemoteChain) -> dict[Place, Transfer]:
    """Read every transfer to the wallet from the chain, with an independent parser."""
    logs = chain.logs(0, chain.height())
    by_place = {(log["transactionHash"], int(log["logIndex"], 16)): log for log in logs}
    found = {}
    for place, log in by_place.items():
        if log["topics"][0] != TRANSFER_TOPIC or log["topics"][2] != topic(WALLET):
            continue
        before = by_place.get((place[0], place[1] - 1))
        used = before is not None and before["topics"][0] == AUTHORIZATION_USED_TOPIC
        nonce = before["topics"][2] if used else None
        sender = "0x" + log["topics"][1][-40:]
        found[place] = Transfer(place, sender, int(log["data"], 16), nonce)
    return found


def _judge_rows(verdict: Verdict, rows, transfers: dict[Place, Transfer]) -> None:
    """Every payment ended with its task, and was paid by a transfer of its own."""
    used = Counter((row["paid_tx"], row["paid_log_index"]) for row in rows if row["paid_tx"])
    for place, times in used.items():
        if times > 1:
            verdict.doubled.append(f"{place} paid {times} times")
    for row in rows:
        verdict.payments[row["state"]] += 1
        if row["state"] not in _ENDED.get(row["status"], ()):
            verdict.stuck.append(f"task {row['id']} is {row['status']}, paid: {row['state']}")
        if row["state"] in _PAID:
            transfer = transfers.get((row["paid_tx"], row["paid_log_index"]))
            if transfer is None or (transfer.sender, transfer.units) != (row["payer"], PRICE):
                verdict.unpaid.append(f"task {row['id']}: the chain knows {transfer}")


def _judge_purchases(verdict: Verdict, rows, transfers, memory: Memory) -> None:
    """Each paid purchase has one task, each task was paid once, and no buyer has another's task."""
    by_place = {(row["paid_tx"], row["paid_log_index"]): row for row in rows}
    by_id = {row["id"]: row for row in rows}
    by_claim = defaultdict(list)
    for transfer in transfers.values():
        by_claim[transfer.nonce or transfer.place[0]].append(transfer)
    owners: dict[str, Purchase] = {}
    for purchase in memory.purchases:
        charged = [transfer for claim in purchase.claims for transfer in by_claim.pop(claim, [])]
        sold = [by_place[one.place] for one in charged if one.place in by_place]
        _judge_purchase(verdict, purchase, charged, sold, by_id)
        for row in sold:
            owners[row["id"]] = purchase
    verdict.doubled += [f"task {task_id} was had for another's money" for task_id in memory.stolen]
    verdict.lost += [f"nobody knows of {rest}" for rest in by_claim.values()]
    verdict.unpaid += [
        f"task {row['id']} is nobody's"
        for row in rows
        if row["state"] in _PAID and row["id"] not in owners
    ]


def _judge_purchase(verdict: Verdict, purchase: Purchase, charged, sold, by_id) -> None:
    tasks = ", ".join(sorted(purchase.task_ids)) or "nothing"
    about = f"{purchase.prompt} was told {tasks}, heard {purchase.surprises}, paid {charged}"
    if purchase.surprises:
        verdict.lost.append(f"surprised: {about}")
    if len(charged) > 1 or len(purchase.task_ids) > 1:
        verdict.doubled.append(about)
    if len(sold) < len(charged) or (charged and not purchase.task_ids):
        verdict.lost.append(f"paid for nothing: {about}")
    if purchase.task_ids - by_id.keys():
        verdict.lost.append(f"forgotten: {about}")
    dropped = all(by_id[one]["status"] == "dropped" for one in purchase.task_ids & by_id.keys())
    if charged and {row["id"] for row in sold} != purchase.task_ids:
        verdict.lost.append(f"another task: {about}")
    if not charged and not dropped:
        verdict.unpaid.append(about)


def _judge_outputs(verdict: Verdict, rows, read_output: Callable[[str], bytes | None]) -> None:
    """The outputs of a completed task are stored completely."""
    for row in rows:
        for output in json.loads(row["result"] or "{}").get("outputs", ()):
            data = read_output(output["key"])
            if data is None or hashlib.sha256(data).hexdigest() != output["sha256"]:
                verdict.lost.append(f"task {row['id']}: {output['key']} is missing or damaged")


def _judge_calls(verdict: Verdict, rows, lines: list[str]) -> None:
    """The provider was called for paid tasks only, and no more often than attempts and deaths."""
    paid = {row["id"] for row in rows if row["state"] in _PAID}
    calls = Counter(line.split()[0] for line in lines)
    verdict.unpaid += [f"task {one} was generated" for one in calls.keys() - paid]
    verdict.doubled += [
        f"task {one} was begun {n} times" for one, n in calls.items() if n > _MAX_CALLS
    ]
