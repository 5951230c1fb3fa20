"""One history in both databases: every sum and list of the operator's is equal, row by row."""

import contextlib
import sqlite3

import attrs
import pytest

from gateway.contracts.parts import Alarm
from gateway.domain import MinedTransfer, PaymentState
from gateway.store import nonces
from gateway.store.endpoint_changes import changes_after
from gateway.store.sqlite import migrations as on_sqlite
from gateway_backups import records as backups
from gateway_backups.records import BackupRecord
from gateway_nodes import records
from gateway_nodes.postgres.migrations import migrate
from gateway_nodes.postgres.session import Session, connect
from gateway_operator.alarms.records import AlarmRecord
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.desk import codes
from gateway_operator.logins import OperatorPasskey, OperatorSession
from gateway_operator.sql import (
    actions,
    alarm_messages,
    alarms,
    all_payments,
    cached_bars,
    current_state,
    ledger,
    logins,
    open_movements,
    overrides,
    passkeys,
    payment_lists,
    refund_lists,
    refunds,
    seen_transfers,
    sessions,
    sums,
    task_detail,
    task_lists,
    tokens,
    totals,
)
from gateway_operator.sql.all_payments import PaymentFilter
from gateway_operator.sql.task_lists import TaskFilter
from gateway_testing.facts import NOW
from gateway_webhooks.queue import _find_undelivered
from tests.operator_history import Sale, add_method_sale, add_sale

# A collation that ignores hyphens, like most servers': there `a-c` comes after `ab`.
_LANGUAGE = "en-US-u-ka-shifted"
_SLUGS = ("ab", "a-c", "a-b", "b")
_REASONS = ("provider_error", "content_policy", "timeout", "a_b", "A-c")
_REFUND_STATES = ("refund_due", "refunding", "refunded", "refund_failed")
_PAYERS = ("0x" + "ab" * 20, "0x" + "0a" * 20)
_FROM, _UNTIL = NOW - 10_000, NOW + 10_000
_PERIOD = sums.Period(since=NOW - 1_000, step_s=100.0, bars=12)
_HOUR_S = 3_600.0
_MARKED = [f"0x{1:064x}", f"0x{2:064x}"]
_FAR = 4e9


@pytest.fixture(scope="module")
def both(postgres_server):
    """SQLite's connection and PostgreSQL's, after the same history."""
    language = _LANGUAGE if postgres_server.knows_languages else ""
    lite = sqlite3.connect(":memory:", isolation_level=None)
    with contextlib.closing(lite), postgres_server.database(language=language) as address:
        on_sqlite.migrate(lite)
        lite.row_factory = sqlite3.Row
        with contextlib.closing(connect(address, "test")) as raw:
            migrate(raw)
            found = (lite, Session(raw))
            for db in found:
                db.execute("BEGIN")
                for fill in (_sell, _work, _operate, _tell):
                    fill(db)
                db.execute("COMMIT")
            yield found


def _sell(db):
    for number, state in enumerate(("settled", "reserved", "released", "refund_due", "settling")):
        serial = ("ab", "B", "a-b", "a-c", "b")[number]
        to = "0x" + "CD" * 20 if number == 3 else None
        add_method_sale(db, at=NOW - 900, state=PaymentState(state), refund_to=to, serial=serial)
    for number in range(120):
        # Several at the same time, with the texts in any order.
        at = NOW - 800 + number // 4 * 7.25
        status = ("completed", "failed", "queued", "processing", "completed")[number % 5]
        add_sale(db, _sale_of(number, at, status), 1_000 + number)
    for number, state in enumerate(("reserved", "settling", "released") * 2):
        add_sale(db, Sale(at=NOW - 50, status="held", state=state), 2_000 + number)


def _sale_of(number, at, status):
    state = ""
    if status == "failed":
        state = _REFUND_STATES[number // 5 % 4]
    return Sale(
        at=at,
        slug=_SLUGS[number % 4],
        units=20_000 + number % 3,
        status=status,
        state=state,
        took_s=0.5 + number % 7,
        cost_micros=None if number % 3 else number * 10,
        details=_REASONS[number // 5 % 5],
        decision=(None, "approved", "rejected")[number // 20 % 3] if state else None,
        proven=number % 2 == 0,
        payer=_PAYERS[number % 2],
        # Together more than 64 bits.
        gas_wei=None if number % 4 else 3 * 10**18 + number,
    )


def _work(db):
    db.execute("UPDATE payments SET paid_units = price_units + 5 WHERE id IN (1003, 1008)")
    db.execute("UPDATE payments SET paid_block = id WHERE id > 1050 AND paid_tx IS NOT NULL")
    db.execute("""UPDATE tasks SET handle = '{"id": "Job-1"}' WHERE payment_id IN (1001, 1006)""")
    db.execute("UPDATE tasks SET provider = 'b-a', callback_url = 'u' WHERE payment_id < 1005")
    db.execute("UPDATE refunds SET sender = '0xkEy', begun_at = ? WHERE payment_id > 1060", (NOW,))
    db.execute("UPDATE sent_transactions SET gas_wei = NULL WHERE payment_id = 1004")
    db.execute("UPDATE sent_transactions SET mined_at = NULL WHERE payment_id IN (1008, 1012)")
    db.execute("UPDATE sent_transactions SET payment_id = 2001 WHERE payment_id = 1016")
    for number, kind in ((1000, "task.completed"), (1001, "task.failed"), (1001, "refund.sent")):
        db.execute(
            """INSERT INTO webhooks_deliveries (task_id, type, payer, host, at, due_at)
               VALUES (?, ?, 'p', 'h', 1, 1)""",
            (_task_id(number), kind),
        )
    for name in ("b", "a-c", "Ab", "ab", "B"):
        db.execute("INSERT INTO nodes VALUES (?, ?, '1', 1.5, ?)", (name, f"life-{name}", _FAR))
    db.execute("INSERT INTO roles VALUES ('leader', 'life-ab', 3, ?)", (_FAR,))


def _task_id(number):
    return f"task_{number:024x}"


def _act(db, subject, **changes):
    actor = Actor(door="page", name="Ada", address="192.0.2.1")
    action = NewAction(actor=actor, at=NOW, action="endpoint.price", subject=subject, **changes)
    return actions.insert(db, action)


def _operate(db):
    for number, slug in enumerate((*_SLUGS, "ab")):
        _act(db, slug, reason="dearer", before={"price": number}, after=None)
        seen = overrides.newest_value(db, slug, "price")
        overrides.insert(db, slug, "price", f"{number + 2}0000", seen, NOW - number)
    for number in range(3):
        _act(db, _task_id(1001), after=[number, 0.5, None, "ä"])
        seen_transfers.mark(db, f"0x{number:064x}", number, NOW + number)
    # Booked after it was marked.
    seen_transfers.book(db, f"0x{1:064x}", 1, NOW + 9)
    _move(db)
    for number, name in enumerate(("b", "a-c", "B", "ab")):
        key = OperatorPasskey(
            id=name, name=name, public_key=b"\0k", sign_count=number, created_at=NOW, used_at=None
        )
        passkeys.insert(db, key)
        tokens.insert(db, f"hash-{name}", name, "read", NOW + number, NOW + 100)
        session = OperatorSession(
            id=f"{name}-session",
            created_at=NOW,
            seen_at=NOW,
            fresh_until=0.0,
            address="192.0.2.1",
            device="Firefox",
        )
        sessions.insert(db, session, "fingerprint")
        for address in ("2001:db8::1", "192.0.2.1", "192.0.2.10"):
            actor = Actor(door="page", name=name, address=address)
            refused = NewAction(
                actor=actor, at=NOW + number // 2 * _HOUR_S, action="login.refuse", subject="login"
            )
            logins.count_refused(db, refused)
    codes._begin(db, "secret")


def _move(db):
    progress = open_movements.Progress(
        addresses=["0xa"], next_block=9, gaps=[(1, 4)], read_at=NOW, born_at=1.5, born_block=1
    )
    names = ("tx_hash", "sender", "recipient")
    rows = [
        open_movements.OpenRow(
            transfer=MinedTransfer(
                **dict.fromkeys(names, f"0x{number}"),
                log_index=number,
                block_number=2**40,
                amount_units=2**60,
            ),
            address="0xa",
            role="refund",
            at=None,
        )
        for number in range(3)
    ]
    open_movements.save(db, progress, rows, ())
    dated = [attrs.evolve(one, at=NOW) for one in rows[:1]]
    open_movements.save(db, progress, dated, [("0x2", 2)])
    open_movements.save(db, progress, rows[:1], ())


def _tell(db):
    for number, subject in enumerate(("b", "a-c", "ab")):
        for ended_at in (None, NOW + number // 2):
            record = AlarmRecord(
                condition="off_sale",
                subject=subject,
                urgency="urgent" if number else "soon",
                text={"title": "t", "text": "ü"},
                since=NOW - 0.125,
                urgent_since=NOW,
                raised_at=NOW if number else None,
                ended_at=ended_at,
                muted_until=NOW + 50 if number else None,
            )
            alarms.save(db, record)
    alarm = Alarm(
        event="raised",
        key="gas",
        urgency="urgent",
        title="Gas",
        text="Low.",
        todo="",
        link="/admin",
        since=NOW,
    )
    alarm_messages.add(db, alarm, ("mail", "push", "Chat"), NOW)
    alarm_messages.note_failed(db, [1, 3], "It says no.", NOW + 5)
    for number, kind in enumerate(("backup", "drill", "backup", "drill")):
        error = "It failed." if number == 2 else None
        record = BackupRecord(
            kind=kind, at=NOW + number, took_s=0.25, name=f"c-{number}", error=error
        )
        backups.add(db, record)


def _filters():
    """Return one filter of every kind, and pages."""
    changes = [
        *({"state": state} for state in ("queued", "failed", "owed", "refunded")),
        *({"slug": slug} for slug in _SLUGS),
        *({"reason": reason} for reason in _REASONS),
        {"payer": _PAYERS[1].upper().replace("X", "x")},
        {"payer": "Voucher ab"},
        {"payer": "Voucher A-c"},
        {"since": NOW - 700, "until": NOW - 650.5},
        {"before": _task_id(1050)},
        *(
            {"search": text}
            for text in (_task_id(1001), "Job-1", "job-1", _PAYERS[0], "a-c", "A-C")
        ),
        {"search": f"0x{1004:064x}"},
        {"search": f"0x{1010 + 2**40:064x}"},
    ]
    return [TaskFilter(), *(TaskFilter(**one) for one in changes)]


def _unordered(rows):
    return sorted(rows, key=repr)


_ASKED = {
    "rows of the books": lambda db: ledger.rows(db, _FROM, _UNTIL),
    "sums of the books": lambda db: _unordered(ledger.sums(db, _FROM, _UNTIL)),
    "failures of the books": lambda db: _unordered(ledger.failed(db, _FROM, _UNTIL).items()),
    "what was owed": ledger.owed_changes,
    "the first sale": ledger.first_sale_at,
    "booked sales": lambda db: _unordered(ledger.booked_sales(db, _FROM, _UNTIL, 1_060, 1_070)),
    "booked refunds": lambda db: _unordered(ledger.booked_refunds(db, _FROM, _UNTIL)),
    "keys of refunds": lambda db: sorted(ledger.refund_senders(db)),
    "open movements": lambda db: (
        open_movements.read(db)[0],
        _unordered(open_movements.read(db)[1]),
    ),
    "the newest booking": lambda db: [seen_transfers.booked_at(db), open_movements.read_at(db)],
    "payments of a payer": lambda db: [
        all_payments.find_payments(db, PaymentFilter(payer=_PAYERS[0], **more), 9)
        for more in ({}, {"state": "settled", "before": 1_040}, {"day": (_FROM, _UNTIL)})
    ],
    "open and overpaid": lambda db: payment_lists.open_and_over(db, 50),
    "open by signer": lambda db: sorted(nonces.open_by_signer(db).items()),
    "paid alike": lambda db: payment_lists.paid_alike(db, _PAYERS[0], 20_001, _FROM, _UNTIL),
    "payers": lambda db: [payment_lists.has_paid(db, one) for one in (*_PAYERS, "0x")],
    "refunds by kind": lambda db: [
        refund_lists.find_refunds(db, kind, before, 7, is_automatic=is_automatic)
        for kind in refund_lists.KINDS
        for before in (None, 1_060)
        for is_automatic in (True, False)
    ],
    "chosen refunds": lambda db: refund_lists.find_chosen(
        db, [_task_id(number) for number in (1006, 1001, 1000)], is_automatic=True
    ),
    "sums of refunds": lambda db: [
        refund_lists.sums(db, NOW + 5, is_automatic=one) for one in (True, False)
    ],
    "approved refunds": lambda db: refunds.approved_units(db, 0.0),
    "slugs and reasons": task_lists.choices,
    "sales by bar": lambda db: sums.sales(db, _PERIOD),
    "kept bars": lambda db: cached_bars.CachedBars().sales(db, _PERIOD),
    "seconds to a result": lambda db: [sums.seconds_to_result(db, one, _FROM) for one in _SLUGS],
    "gas": lambda db: sums.gas(db, _FROM),
    "the newest sales": lambda db: sums.newest_sales(db, 60),
    "tasks": lambda db: [task_lists.find_tasks(db, one, 30) for one in _filters()],
    "one task": lambda db: [
        task_detail.find_task(db, one)
        for one in (*(_task_id(number) for number in range(1_000, 1_010)), "task_a-c", "no")
    ],
    "undelivered events": lambda db: [
        [*map(tuple, _find_undelivered(db, _task_id(number)))] for number in (1_000, 1_001, 1_002)
    ],
    "a prompt": lambda db: task_detail.find_prompt(db, _task_id(1_000)),
    "totals": lambda db: [_totals(totals.read_totals(db, *after)) for after in ((0, 0), (9, 1030))],
    "gas by purpose": totals.gas_by_purpose,
    "owed now": lambda db: [current_state.owed_now(db, is_automatic=one) for one in (True, False)],
    "open payments": current_state.open_payments,
    "open by method": lambda db: _unordered(current_state.open_by_method(db).items()),
    "tasks that wait": current_state.waiting_tasks,
    "tasks that run": lambda db: _unordered(current_state.running_tasks(db).items()),
    "newest failures": lambda db: [current_state.recent_failures(db, one) for one in _SLUGS],
    "margins": lambda db: [current_state.recent_margin(db, one) for one in (*_SLUGS, "no")],
    "overrides": lambda db: _unordered(current_state.overrides(db)),
    "changes of endpoints": lambda db: changes_after(db, -1, NOW + 1),
    "history of an endpoint": lambda db: overrides.history(db, "ab", 9),
    "sold since": lambda db: [overrides.sold_since(db, one, NOW - 700) for one in _SLUGS],
    "unfinished": lambda db: [overrides.unfinished(db, one) for one in _SLUGS],
    "the audit log": lambda db: actions.find(db, None, 50),
    "marked transfers": lambda db: _unordered(seen_transfers.find(db, _MARKED).values()),
    "reasons of marks": lambda db: _unordered(seen_transfers.reasons(db, _MARKED).items()),
    "passkeys": passkeys.list_all,
    "tokens": tokens.list_all,
    "sessions": lambda db: sessions.list_open(db, "fingerprint", 0.0, 0.0),
    "refused logins": lambda db: [logins.list_refused(db, limit) for limit in (2, 50)],
    "sum of refused logins": lambda db: logins.refused_since(db, NOW + 1),
    "codes": codes._find,
    "open alarms": alarms.open_alarms,
    "past alarms": lambda db: alarms.past_alarms(db, 50),
    "mutes": lambda db: alarms.mutes(db, NOW),
    "messages that are due": lambda db: alarm_messages.due(db, NOW + 1, 50),
    "messages unsent": lambda db: alarm_messages.unsent(db, 0.0, 50),
    "backups": lambda db: [backups.records(db, 50), backups.newest(db, "backup", succeeded=True)],
    "the newest backup": current_state.newest_backup_at,
    "what a backup forgets": lambda db: backups.forgotten(db, 1_040, NOW, NOW + 9),
    "transactions without a time": lambda db: nonces.undated(db, 1, ()),
    "nodes": records.find_nodes,
}


def _totals(found):
    """Return totals without the invisible order of groups."""
    values = {one.name: getattr(found, one.name) for one in attrs.fields(totals.ReadTotals)}
    return {
        name: _unordered(value) if isinstance(value, list) else value
        for name, value in values.items()
    }


@pytest.mark.parametrize("name", _ASKED)
def test_both_databases_answer_alike(both, name):
    lite, postgres = (_ASKED[name](db) for db in both)
    assert lite not in (None, 0, [], {}, set())
    assert lite == postgres
    # 1, 1.0 and True are equal, but displayed differently.
    assert repr(lite) == repr(postgres)
