"""The disk is read seldom for prices, and each time for a payment."""

import os

import attrs
import pytest

from gateway.catalog.catalog import Catalog
from gateway.errors import ExecutionError
from gateway.running import readiness
from gateway.running.readiness import Readiness
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider


class Store:
    """A store with workers, whose disk may be full."""

    is_full = False
    nodes = type("Nodes", (), {"has_workers": True})()


@pytest.fixture
def reads(monkeypatch):
    found, statvfs = [], os.statvfs
    monkeypatch.setattr(os, "statvfs", lambda folder: (found.append(folder), statvfs(folder))[1])
    return found


@pytest.fixture
def ready(settings):
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    catalog = Catalog({})
    catalog.register(ENDPOINT, ScriptedProvider(), "acme")
    return Readiness(settings, catalog, Store())


def test_a_thousand_prices_read_the_disk_once(ready, reads, monkeypatch):
    monkeypatch.setattr(readiness, "_DISK_S", 3600.0)
    assert {ready.find_problem() for _ in range(1000)} == {None}
    assert len(reads) == 1


def test_the_disk_is_read_again_after_a_while(ready, reads, monkeypatch):
    monkeypatch.setattr(readiness, "_DISK_S", 0.0)
    assert {ready.find_problem() for _ in range(3)} == {None}
    assert len(reads) == 3


def test_a_failed_write_and_new_settings_count_at_once(ready, monkeypatch):
    monkeypatch.setattr(readiness, "_DISK_S", 3600.0)
    assert ready.find_problem() is None
    ready.store.is_full = True
    assert "disk" in str(ready.find_problem())
    ready.store.is_full = False
    assert ready.find_problem() is None
    ready.settings = attrs.evolve(ready.settings, min_free_disk_mb=10**9)
    assert "disk" in str(ready.find_problem())


def test_a_payment_reads_the_disk_itself(ready, reads, monkeypatch):
    monkeypatch.setattr(readiness, "_DISK_S", 3600.0)
    assert ready.find_problem() is None
    full = attrs.evolve(ready.read_disk(), free_bytes=0, floor_bytes=1)
    monkeypatch.setattr(readiness, "read_disk", lambda *_, **__: full)
    with pytest.raises(ExecutionError, match="disk is nearly full"):
        ready.check_serving(ENDPOINT.slug)
    # Later prices use what the payment has found.
    assert "disk" in str(ready.find_problem())
