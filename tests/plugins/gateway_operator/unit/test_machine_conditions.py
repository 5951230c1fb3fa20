"""Conditions of the disk, the clock, the copies and the login, each by its facts."""

import attrs
import pytest

from gateway.contracts.nodes import NodeRecord
from gateway.domain import Block
from gateway.settings import Settings
from gateway.store.disk import DiskState
from gateway.telemetry import signals
from gateway_backups.records import BackupRecord
from gateway_operator.audit_log import ActionRecord, Actor
from gateway_operator.desk.backups import BackupStatus
from gateway_operator.desk.condition import Thresholds
from gateway_operator.desk.conditions import Condition, find_conditions
from gateway_operator.desk.desk import DiskPace
from gateway_operator.desk.last_seen import Seen
from gateway_operator.desk.machine_facts import MachineFacts
from gateway_operator.desk.rpc_watch import RpcWatch
from tests.plugins.gateway_operator.unit.test_conditions import FACTS, NOW, endpoint, key

HOUR_S = 3_600.0
COPIES = BackupStatus(is_on=True, every_s=HOUR_S, age_s=60.0, drill_age_s=60.0)


def find(limits: Thresholds | None = None, **machine) -> list[Condition]:
    return find_conditions(attrs.evolve(FACTS, machine=MachineFacts(**machine)), limits)


def only(**machine) -> Condition:
    (found,) = find(**machine)
    return found


def test_a_node_that_ended_without_a_stop_is_told_and_one_that_stopped_is_not():
    def node(name, silent_s, **changes):
        return NodeRecord(
            name=name,
            version="1",
            started_at=NOW - 9000,
            seen_at=NOW - silent_s,
            is_leader=False,
            **changes,
        )

    nodes = [node("a", 5), node("b", 7200), node("c", 7200, is_stopped=True)]
    (found,) = find(nodes=nodes)
    assert (found.key, found.level) == ("node:b", "warn")
    assert found.title == "Node b has not been seen for 2 h"


@pytest.mark.parametrize(
    ("ahead_s", "level"), [(10, None), (20, "warn"), (90, "bad"), (-20, "warn"), (-90, "bad")]
)
def test_the_clock_is_compared_with_the_newest_block(ahead_s, level):
    block = Block(number=1, hash="0x1", timestamp=int(NOW - ahead_s))
    found = find_conditions(attrs.evolve(FACTS, head=Seen(value=block, at=NOW)))
    assert [one.level for one in found] == ([level] if level else [])


def test_a_block_of_an_earlier_look_says_nothing_about_the_clock():
    block = Block(number=1, hash="0x1", timestamp=int(NOW - 90))
    silent = Seen(value=block, at=NOW - 60, problem="It does not answer.")
    assert find_conditions(attrs.evolve(FACTS, head=silent)) == []


@pytest.mark.parametrize(
    ("free", "level"), [(700, None), (599, "warn"), (200, "warn"), (199, None)]
)
def test_a_disk_that_gets_full_is_told_before_sales_stop(free, level):
    # The check of /api/ready reports a disk below the floor.
    found = find(disk=DiskState(free_bytes=free * 10**6, floor_bytes=200 * 10**6))
    assert [one.level for one in found] == ([level] if level else [])


def test_a_disk_that_is_full_within_three_days_is_told():
    large = DiskState(free_bytes=10**12, floor_bytes=2 * 10**8)
    assert find(disk=large, disk_lasts_s=4 * 24 * HOUR_S) == []
    found = only(disk=large, disk_lasts_s=2 * 24 * HOUR_S)
    assert (found.level, found.key) == ("warn", "disk:")
    assert "in 2 d" in found.text


@pytest.mark.parametrize(("free", "level"), [(299, None), (899, "warn"), (900, None)])
def test_a_disk_that_runs_out_of_inodes_is_told_before_sales_stop(free, level):
    disk = DiskState(free_bytes=10**12, floor_bytes=0, free_inodes=free, floor_inodes=300)
    found = find(disk=disk)
    assert [one.level for one in found] == ([level] if level else [])
    assert all(f"{free} inodes" in one.title for one in found)


def test_the_pace_of_the_disk_is_known_after_half_a_day():
    pace = DiskPace()
    for hour in range(12):
        pace.note(NOW + hour * HOUR_S, 100 - hour)
    assert pace.lasts_s(NOW + 11 * HOUR_S, 89, 9) is None
    # 12 bytes in 12 hours, and 79 above the floor.
    assert pace.lasts_s(NOW + 12 * HOUR_S, 88, 9) == 79 * HOUR_S
    assert pace.lasts_s(NOW + 12 * HOUR_S, 100, 9) is None
    assert pace.lasts_s(NOW + 12 * HOUR_S, 5, 9) == 0


def test_an_rpc_endpoint_that_only_fails_is_told_after_a_quarter_of_an_hour(clock):
    clock.frozen_at = NOW
    watch = RpcWatch(clock)
    for _ in range(16):
        signals.rpc_failing.send(endpoint=1, is_failing=True)
        clock.offset_s += 60
    assert watch.failing() == {1: 900}
    (found,) = find(failing_rpc=watch.failing())
    assert (found.level, found.key) == ("warn", "rpc_endpoint:1")
    signals.rpc_failing.send(endpoint=1, is_failing=False)
    assert watch.failing() == {}
    signals.rpc_failing.send(endpoint=2, is_failing=True)
    clock.offset_s += 601
    # No request since: it may work again.
    assert watch.failing() == {}


@pytest.mark.parametrize(("seconds", "level"), [(4, None), (6, "warn"), (31, "bad")])
def test_a_plugin_that_blocks_the_loop_is_named(seconds, level):
    found = find(blocked={"acme": seconds})
    assert [(one.level, one.subject) for one in found] == ([(level, "acme")] if level else [])


def test_refused_logins_and_a_login_of_a_new_browser_are_told():
    assert find(refused_logins=4) == []
    assert only(refused_logins=5).title == "5 logins refused within an hour"
    login = ActionRecord(
        id=1,
        at=NOW,
        actor=Actor(door="page", name="s1", address="192.0.2.1"),
        action="login",
        subject="session s1",
        after={"knownBrowser": False},
    )
    found = only(new_logins=[login])
    assert (found.level, found.subject) == ("note", "s1")
    assert "192.0.2.1" in found.text


def test_an_overdue_copy_says_why():
    failed = BackupRecord(
        id=2, kind="backup", at=NOW, took_s=1.0, name="x", error="The bucket refuses (403)."
    )
    assert find(backups=attrs.evolve(COPIES, age_s=1.9 * HOUR_S)) == []
    late = attrs.evolve(COPIES, age_s=2.1 * HOUR_S, failed=failed)
    found = only(backups=late)
    assert (found.level, found.condition) == ("warn", "backup_late")
    assert "The bucket refuses (403)." in found.text


def test_a_drill_that_failed_is_urgent_and_an_old_one_is_told():
    drill = BackupRecord(id=1, kind="drill", at=NOW, took_s=1.0, name="x")
    assert find(backups=attrs.evolve(COPIES, drill=drill)) == []
    broken = attrs.evolve(drill, error="The copy is damaged.")
    assert only(backups=attrs.evolve(COPIES, drill=broken)).level == "bad"
    old = attrs.evolve(COPIES, drill=drill, drill_age_s=31 * 86_400.0)
    assert only(backups=old).level == "warn"


@pytest.mark.parametrize(("hours", "level"), [(0.5, None), (2, "warn"), (25, "bad")])
def test_a_transfer_that_paid_for_nothing_is_told_after_an_hour(hours, level):
    found = find(unused=[NOW - hours * HOUR_S, NOW - 60])
    assert [one.level for one in found] == ([level] if level else [])


def test_gas_that_lasts_for_less_than_three_days_of_sales_is_told():
    gas = key(role="settlement", lasts_for=900)
    busy = attrs.evolve(FACTS, **gas, **endpoint(sold=400))
    assert [one.condition for one in find_conditions(busy)] == ["gas"]
    quiet = attrs.evolve(FACTS, **gas, **endpoint(sold=200))
    assert find_conditions(quiet) == []


def test_thresholds_are_settings():
    limits = Thresholds.of(
        Settings().changed(
            alarm_gas="50/5",
            alarm_failures="10/18",
            alarm_refund_hours=2.0,
            alarm_unclaimed_hours="6/48",
            alarm_queue_seconds="300/1200",
        )
    )
    assert (limits.gas_soon, limits.gas_urgent) == (50, 5)
    assert (limits.failures_soon, limits.failures_urgent) == (10, 18)
    assert limits.refund_soon_s == 2 * HOUR_S
    assert find(limits, unused=[NOW - 5 * HOUR_S]) == []
    assert find_conditions(attrs.evolve(FACTS, **endpoint(failed=9)), limits) == []
    assert (limits.queue_soon_s, limits.queue_urgent_s) == (300.0, 1200.0)
