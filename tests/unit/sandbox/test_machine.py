"""The memory that a gateway may use: the machine's, or that of its control groups."""

import pytest

from gateway.sandbox.child import confinement, machine

MB = 10**6


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Writes this process's groups and the files of their limits; returns the memory found."""
    monkeypatch.setattr(machine, "_ROOT", tmp_path)
    monkeypatch.setattr(machine, "_GROUPS", tmp_path / "own")
    monkeypatch.setattr(machine.os, "sysconf", lambda _: 10**5)

    def find(own, limits):
        (tmp_path / "own").write_text(own)
        for name, text in limits.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return machine.find_memory_bytes.__wrapped__()

    return find


@pytest.mark.parametrize(
    ("own", "limits", "found"),
    [
        ("", {}, 10_000 * MB),
        # A container: its group is the root.
        ("0::/\n", {"memory.max": "1000000000\n"}, 1000 * MB),
        ("0::/\n", {"memory.max": "max\n"}, 10_000 * MB),
        ("4:memory:/docker/1\n", {"memory/memory.limit_in_bytes": "1000000000"}, 1000 * MB),
        # A unit of systemd, in a slice with a lower limit.
        (
            "0::/system.slice/gateway.service\n",
            {
                "system.slice/gateway.service/memory.max": "2000000000",
                "system.slice/memory.max": "1500000000",
            },
            1500 * MB,
        ),
        (
            "3:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n",
            {"memory/a/b/memory.limit_in_bytes": "9223372036854771712", "x/memory.max": "1"},
            10_000 * MB,
        ),
        # Above this, the kernel slows the group down.
        ("0::/\n", {"memory.max": "max", "memory.high": "900000000"}, 900 * MB),
        ("nonsense\n0::/a\n", {"a/memory.max": "1000000000"}, 1000 * MB),
        # More than the machine has.
        ("0::/\n", {"memory.max": "20000000000"}, 10_000 * MB),
    ],
)
def test_the_lowest_limit_around_the_process_counts(groups, own, limits, found):
    assert groups(own, limits) == found


def test_a_childs_address_space_is_at_most_the_machines_memory(monkeypatch):
    for memory, limit in ((10_000, 1500), (1000, 1000), (300, 600)):
        monkeypatch.setattr(confinement, "find_memory_bytes", lambda memory=memory: memory * MB)
        assert confinement.memory_bytes(1500 * MB) == limit * MB


def test_a_child_adds_no_more_than_this_machine_has_for_it(monkeypatch):
    for name, bytes_ in (("find_memory_bytes", 1000 * MB), ("find_budget_bytes", 650 * MB)):
        monkeypatch.setattr(confinement, name, lambda bytes_=bytes_: bytes_)
    # Its warmed process has 300 MB of address space, and 200 MB of memory.
    assert confinement.address_space(1500 * MB, 300 * MB, 200 * MB) == 750 * MB
    assert confinement.address_space(700 * MB, 300 * MB, 200 * MB) == 700 * MB
    # The least is that of a 4K picture.
    assert confinement.address_space(1500 * MB, 100 * MB, 200 * MB) == 600 * MB
