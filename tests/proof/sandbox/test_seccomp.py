"""The filter's program, run here for both CPU types, and the fallback without one."""

import platform
import re
from pathlib import Path

import pytest

from gateway.sandbox.child import prctl, seccomp, system_calls
from gateway_check import sandboxes
from gateway_check.rows import make_row
from tests.proof.process.gateway_process import Gateway

PID = 4711
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
TABLES = {
    **system_calls.ALLOWED,
    **system_calls.READING,
    **system_calls.CONDITIONAL,
    **system_calls.HOSTILE,
}


def verdict(program, audit, number, *arguments):
    """Run a program like the kernel on one system call."""
    words = [number, audit, 0, 0]
    for argument in (*arguments, 0, 0, 0, 0, 0, 0)[:6]:
        words += [argument & 0xFFFFFFFF, argument >> 32 & 0xFFFFFFFF]
    loaded, at = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x06:
            return operand
        if code == 0x20:
            loaded = words[operand // 4]
            continue
        holds = loaded == operand if code == 0x15 else loaded & operand
        at += if_true if holds else if_false


@pytest.fixture(params=MACHINES)
def judge(request):
    """Returns the verdict on a call, by its name and arguments."""
    place = system_calls.MACHINES.index(request.param)

    def judged(name, *arguments, may_read=False):
        program = seccomp.program(request.param, PID, may_read=may_read)
        return verdict(program, MACHINES[request.param], TABLES[name][place], *arguments)

    judged.names = [name for name, numbers in TABLES.items() if numbers[place] is not None]
    return judged


def test_what_computing_takes_is_allowed_and_what_is_hostile_ends_the_process(judge):
    for name in judge.names:
        if name in system_calls.ALLOWED:
            assert judge(name) == seccomp.ALLOW, name
        if name in system_calls.HOSTILE:
            assert judge(name) == seccomp.KILL, name


def test_files_are_described_and_opened_only_where_reading_is_allowed(judge):
    for name in set(system_calls.READING) & set(judge.names):
        assert judge(name) == seccomp.EPERM, name
        assert judge(name, may_read=True) == seccomp.ALLOW, name
    assert judge("newfstatat", 3, 0, 0, 0x1000) == seccomp.ALLOW  # an open file
    assert judge("openat") == seccomp.EPERM
    assert judge("openat", 0, 0, 0o2000000, may_read=True) == seccomp.ALLOW  # O_CLOEXEC
    for writing in (0o1, 0o2, 0o100, 0o1000):
        assert judge("openat", 0, 0, writing, may_read=True) == seccomp.EPERM


def test_a_thread_may_start_and_a_process_may_not(judge):
    assert judge("clone", 0x3D0F00) == seccomp.ALLOW  # glibc's flags
    assert judge("clone", 0x7D0F00) == seccomp.ALLOW  # musl's
    assert judge("clone", 17) == seccomp.EPERM  # SIGCHLD: a fork
    assert judge("clone", 0x3D0F00 | 0x10000000) == seccomp.EPERM  # CLONE_NEWUSER
    assert judge("clone3") == seccomp.ENOSYS


def test_signals_go_to_the_process_itself_only(judge):
    for name in ("kill", "tgkill"):
        assert judge(name, PID) == seccomp.ALLOW
        for other in (PID + 1, 0, 1, -1, -PID):
            assert judge(name, other) == seccomp.EPERM


def test_limits_are_read_not_set_and_only_the_own(judge):
    assert judge("prlimit64", 0, 7, 0, 1 << 40) == seccomp.ALLOW
    assert judge("prlimit64", PID + 1, 7, 0, 1) == seccomp.EPERM
    assert judge("prlimit64", 0, 7, 1) == seccomp.EPERM
    assert judge("prlimit64", 0, 7, 1 << 32) == seccomp.EPERM


def test_a_process_asks_nothing_of_the_kernel_but_names(judge):
    assert judge("prctl", 15) == seccomp.ALLOW
    for option in (1, 4, 22, 38):  # PDEATHSIG, DUMPABLE, SECCOMP, NO_NEW_PRIVS
        assert judge("prctl", option) == seccomp.EPERM
    assert judge("fcntl", 3, 3) == seccomp.ALLOW
    for command in (0, 4, 8, 10):  # F_DUPFD, F_SETFL, F_SETOWN, F_SETSIG
        assert judge("fcntl", 3, command) == seccomp.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_unknown_calls_fail_and_those_of_another_processor_end_the_process(machine):
    program = seccomp.program(machine, PID)
    for number in (999, 0x40000000, 0x40000001):  # the last two: x32, numbers of their own
        assert verdict(program, MACHINES[machine], number) == seccomp.EPERM
    for other in (0x40000003, 0xC00000F3, *(MACHINES[one] for one in MACHINES if one != machine)):
        assert verdict(program, other, 0) == seccomp.KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_the_kernels(machine):
    if not HEADERS[machine].exists():
        pytest.skip("the kernel's headers are not installed")
    lines = re.findall(
        r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text(), re.MULTILINE
    )
    numbers = dict(lines) | ({"newfstatat": "79"} if machine == "aarch64" else {})
    place = system_calls.MACHINES.index(machine)
    ours = {name: row[place] for name, row in TABLES.items() if row[place] is not None}
    assert {name: str(number) for name, number in ours.items()} == {
        name: numbers.get(name) for name in ours
    }


def test_a_processor_without_numbers_is_left_to_the_limits(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(seccomp, "prctl", lambda *_: pytest.fail("the kernel was asked"))
    seccomp.install()
    monkeypatch.setattr(prctl.sys, "platform", "darwin")
    prctl.hide_memory()
    prctl.drop_capabilities()


@pytest.mark.skipif(platform.system() != "Linux", reason="a filter that only Linux has")
async def test_the_check_says_how_files_are_read(monkeypatch):
    row = await make_row("sandbox", sandboxes.check_confinement)
    assert (row.ok, row.found) == (True, sandboxes._CONFINED)
    monkeypatch.setattr("sys.executable", "/bin/false")
    row = await make_row("sandbox", sandboxes.check_confinement)
    assert (row.ok, "could not be started" in row.found) == (False, True)


async def test_the_check_says_where_the_kernel_refuses_the_filter(monkeypatch):
    class Unfiltered:
        def __init__(self, **_):
            pass

        async def call(self):
            return b"limited"

        def close(self):
            pass

    monkeypatch.setattr(sandboxes, "Sandbox", Unfiltered)
    row = await make_row("sandbox", sandboxes.check_confinement)
    assert row.ok
    assert "resource limits only" in row.found


LOOKING = """
import ctypes, os, pathlib
found = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)  # PR_GET_DUMPABLE
pathlib.Path(os.environ["SLOW_FOLDER"], "dumpable").write_text(str(found))
"""


@pytest.mark.skipif(platform.system() != "Linux", reason="a wish that only Linux grants")
def test_the_gateway_hides_its_memory(tmp_path, chain, key):
    gateway = Gateway(tmp_path, chain, key)
    gateway.install("looking_provider", LOOKING)
    try:
        gateway.start()
    finally:
        gateway.kill()
    assert (tmp_path / "dumpable").read_text() == "0"
