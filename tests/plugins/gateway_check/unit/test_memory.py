"""The row about the memory of the processes that read files."""

from types import SimpleNamespace

import pytest

from gateway_check import sandboxes
from gateway_check.rows import Note


@pytest.mark.parametrize(("own_mb", "is_noted"), [(0, False), (500, False), (2000, True)])
async def test_a_setting_above_the_machines_memory_is_noted(monkeypatch, own_mb, is_noted):
    monkeypatch.setattr(sandboxes, "find_budget_bytes", lambda: 650 * 10**6)
    row = await sandboxes.check_memory(SimpleNamespace(sandbox_memory_mb=own_mb))
    assert isinstance(row, Note) == is_noted
    assert row.startswith(f"{own_mb or 650:,} MB")
