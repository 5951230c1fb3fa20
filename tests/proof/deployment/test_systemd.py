"""The systemd unit: it is valid, grants few rights, and waits for the gateway's shutdown."""

import configparser
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "deploy" / "systemd" / "generation-gateway.service"
ANALYZE = shutil.which("systemd-analyze")
# In tenths. It was 1.4 at first; systemd calls anything below 2 OK.
WORST_EXPOSURE = 15

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")


@pytest.fixture
def service() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(UNIT)
    return parser["Service"]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return the unit with an existing program, which systemd requires."""
    text = UNIT.read_text("utf-8")
    copy = tmp_path / UNIT.name
    copy.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={shutil.which('true')}", text))
    return copy


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@needs_systemd
def test_systemd_finds_nothing_to_say_about_it(installed):
    verified = subprocess.run(
        [ANALYZE, "verify", "--man=no", installed], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")


@needs_systemd
def test_what_it_leaves_open_is_little(installed):
    bound = f"--threshold={WORST_EXPOSURE}"
    judged = subprocess.run(
        [ANALYZE, "security", "--offline=true", bound, installed],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout


def test_it_runs_as_a_user_without_rights_in_its_own_folder(service):
    assert service["User"] == "gateway"
    assert service["CapabilityBoundingSet"] == ""
    assert service["ProtectSystem"] == "strict"
    folder = f"/var/lib/{service['StateDirectory']}"
    assert f"Environment=GATEWAY_DATA_DIR={folder}\n" in UNIT.read_text("utf-8")
    assert service["WorkingDirectory"] == folder


def test_it_waits_as_long_as_the_gateway_takes_to_stop(service):
    (kill_timeout,) = re.findall(r"kill_timeout = (\d+)", (ROOT / "fly.toml").read_text("utf-8"))
    assert service["TimeoutStopSec"] == kill_timeout
    assert service["KillMode"] == "mixed"


_WITHOUT_WRITABLE_CODE = """
import ctypes, os, sys
prctl = ctypes.CDLL(None, use_errno=True).prctl
PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, REFUSE_EXEC_GAIN = 38, 65, 1
if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0):
    sys.exit(77)
os.execv(sys.executable, [sys.executable, "-m", "gateway", *sys.argv[1:]])
"""


@pytest.mark.full
def test_the_gateway_runs_without_memory_that_is_written_and_run(service, tmp_path):
    """MemoryDenyWriteExecute, as in kernels since 6.3: the demo makes all its purchases."""
    assert service["MemoryDenyWriteExecute"] == "true"
    ports = [f"--port={free_port()}", f"--rpc-port={free_port()}"]
    command = [sys.executable, "-c", _WITHOUT_WRITABLE_CODE, "demo", "--once", *ports]
    demo = subprocess.run(
        [*command, "--output", tmp_path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if demo.returncode == 77:
        pytest.skip("needs Linux 6.3")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert (tmp_path / "document.md").exists()
