"""The systemd unit: it is valid, grants few rights, and waits for the gateway's shutdown."""

import configparser
import re
import shutil
import subprocess
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


def install(name: str, folder: Path) -> Path:
    """Write the unit under a name, with an existing program, which systemd requires."""
    text = UNIT.read_text("utf-8")
    copy = folder / name
    copy.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={shutil.which('true')}", text))
    return copy


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    return install(UNIT.name, tmp_path)


@needs_systemd
def test_systemd_finds_nothing_to_say_about_it(installed):
    verified = subprocess.run(
        [ANALYZE, "verify", "--man=no", installed], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")


@needs_systemd
def test_the_same_file_is_valid_as_a_template_of_several_processes(tmp_path):
    template = install("generation-gateway@.service", tmp_path)
    verified = subprocess.run(
        [ANALYZE, "verify", "--man=no", template.with_name("generation-gateway@2.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (verified.returncode, verified.stderr) == (0, "")


def test_each_process_of_the_template_has_its_own_folder_and_settings(service):
    assert service["StateDirectory"] == "generation-gateway%i"
    text = UNIT.read_text("utf-8")
    # Not required: a single process has none. Later files take precedence.
    files = re.findall(r"^EnvironmentFile=(.*)$", text, re.MULTILINE)
    assert files == ["/etc/generation-gateway/gateway.env", "-/etc/generation-gateway/node%i.env"]


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


def test_memory_may_be_written_and_run_because_signing_needs_it(service):
    """Importing btclib-secp256k1 allocates a callback of cffi, which the directive would refuse."""
    assert service["MemoryDenyWriteExecute"] == "false"
