"""The guided demo as a user runs it: command, output and files."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image, ImageOps

from gateway_demo.sample import SCHEMA, TABLE
from gateway_demo.tour.client import open_session
from tests.likeness import colour_difference, likeness, scene_of

# The demo takes over a minute on a busy machine.
PATIENCE_S = 300
EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"
HAS_MODELS = find_spec("generation_gateway_models") is not None
PLAY_MONEY = "play money, on 127.0.0.1 only"


def command(output: Path, *options: str) -> list[str]:
    return [sys.executable, "-P", "-m", "gateway", "demo", "--output", str(output), *options]


def environment(*first: Path, **more: str) -> dict[str, str]:
    path = os.pathsep.join([*map(str, first), *sys.path])
    # The demo lists each GATEWAY_ variable it finds, and CI sets one for its tests.
    ours = {key: value for key, value in os.environ.items() if not key.startswith("GATEWAY_")}
    return {**ours, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **more}


def run(output: Path, *options: str, env: dict[str, str] | None = None):
    return subprocess.run(
        command(output, "--once", *options),
        cwd=tempfile.gettempdir(),
        check=False,
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def on_free_ports() -> list[str]:
    return ["--port", "0", "--rpc-port", "0"]


def is_closed(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "bought"


@pytest.fixture(scope="module")
def finished(output: Path):
    """A run in a folder of an earlier one, with a setting and a proxy that it must ignore."""
    output.mkdir()
    (output / "document.md").write_text("stale")
    env = environment(GATEWAY_BIND="0.0.0.0:1", HTTP_PROXY="http://127.0.0.1:1")
    return run(output, *on_free_ports(), env=env)


def test_all_purchases_succeed_and_are_told_in_plain_lines(finished):
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "\x1b" not in finished.stdout
    assert finished.stderr == ""
    assert "402 Payment Required: 0.02 USDC" in finished.stdout
    hashes = r"^     (?:settled|mined  ) 0x[0-9a-f]{64}$"
    count, spent = (8, "0.118") if HAS_MODELS else (4, "0.08")
    left = f"{100 - float(spent):.6g}"
    assert f"{'Eight' if HAS_MODELS else 'Four'} purchases over HTTP" in finished.stdout
    assert ("make models demo" in finished.stdout) is not HAS_MODELS
    assert len(re.findall(hashes, finished.stdout, re.MULTILINE)) == count
    assert re.search(rf"buyer +100 USDC +{left} USDC +-{spent} USDC", finished.stdout)
    assert re.search(rf"gateway's wallet +0 USDC +{spent} USDC +\+{spent} USDC", finished.stdout)


def test_it_says_first_and_last_that_the_money_is_play_money(finished):
    lines = [line for line in finished.stdout.splitlines() if line]
    assert PLAY_MONEY in lines[2]
    assert any(PLAY_MONEY in line for line in lines[-3:])


def test_it_says_where_to_buy_by_click_before_anything_is_started(finished):
    lines = [line for line in finished.stdout.splitlines() if line]
    assert re.fullmatch(r"Shop page, once the gateway runs: http://127\.0\.0\.1:\d+/", lines[3])


def test_lines_fit_a_terminal_of_80_columns(finished, output):
    lines = [line for line in finished.stdout.splitlines() if str(output) not in line]
    assert max(map(len, lines)) <= 80


def test_the_picture_is_one(finished, output):
    with Image.open(output / "picture.png") as picture:
        picture.load()
        size = f"{picture.width} x {picture.height}"
    assert size in finished.stdout
    assert picture.width > picture.height >= 500


def test_the_edit_is_another_picture_of_the_same_scene(finished, output):
    """It was bought over HTTP from the picture of the first purchase."""
    with Image.open(output / "picture.png") as one, Image.open(output / "edited.png") as two:
        before, after = scene_of(one), scene_of(two)
    assert colour_difference(before, after) > 10
    assert likeness(before, after) > 0.85
    assert likeness(before, ImageOps.mirror(after)) < 0.85


def test_the_markdown_holds_what_the_document_says(finished, output):
    markdown = (output / "document.md").read_text()
    assert (output / "document.pdf").read_bytes().startswith(b"%PDF")
    assert re.search(r"^# Quarterly Report$", markdown, re.MULTILINE)
    for row in TABLE:
        assert " | ".join(row) in markdown
    assert "stale" not in markdown


def test_the_data_is_what_the_schema_asks_of_the_invoice(finished, output):
    data = json.loads((output / "document.json").read_text())
    assert set(data) == set(SCHEMA["properties"])
    assert (data["due_date"], data["total"], data["discount"]) == ("2026-10-30", 9479.0, None)
    assert [item["quantity"] for item in data["items"]] == [480, 120, 96, 1]
    assert '"due_date": "2026-10-30"' in finished.stdout


@pytest.mark.skipif(not HAS_MODELS, reason="make models installs the weights")
def test_real_models_cut_out_enlarge_speak_and_write_what_was_spoken(finished, output):
    with Image.open(output / "cut-out.png") as picture:
        alpha = picture.convert("RGBA").getchannel("A")
        # The cup is opaque, and the table around it is not there.
        assert (alpha.getpixel((140, 130)), alpha.getpixel((280, 20))) == (255, 0)
    with Image.open(output / "enlarged.png") as picture:
        assert picture.size == (1200, 800)
    heard = (output / "transcript.txt").read_text()
    assert "33,289 bags between July and September 2026" in heard


def test_it_heeds_no_settings(finished):
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "The demo ignores GATEWAY_BIND." in finished.stdout


@pytest.mark.parametrize(("option", "other"), [("--port", "--rpc-port"), ("--rpc-port", "--port")])
def test_a_busy_port_is_said_in_a_sentence_that_names_a_free_one(tmp_path, option, other):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        refused = run(tmp_path / "bought", option, str(port), other, "0")
    assert refused.returncode == 1
    assert refused.stdout == ""
    match = re.fullmatch(
        rf"gateway demo: Port {port} on 127\.0\.0\.1 is in use; "
        rf"choose another: gateway demo {option} (\d+)\n",
        refused.stderr,
    )
    assert match
    assert is_closed(int(match[1]))


def test_an_impossible_port_is_said_in_a_sentence(tmp_path):
    refused = run(tmp_path / "bought", "--port", "99999")
    assert refused.returncode == 1
    assert "There is no port 99999; choose another" in refused.stderr


def test_one_port_for_both_is_said_in_a_sentence(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    refused = run(tmp_path / "bought", "--port", port, "--rpc-port", port)
    assert refused.returncode == 1
    assert f"--port and --rpc-port are both {port}" in refused.stderr


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    refused = run(tmp_path / "file" / "bought", *on_free_ports())
    assert refused.returncode == 1
    assert refused.stderr.startswith("gateway demo: Nothing can be written to ")


@pytest.mark.full
def test_a_gateway_that_ends_is_told_with_the_end_of_its_log(tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "gateway_documents.py").write_text("raise RuntimeError('of no use today')")
    failed = run(tmp_path / "bought", *on_free_ports(), env=environment(broken))
    assert failed.returncode == 1
    *log, sentence = failed.stderr.splitlines()
    assert sentence == "gateway demo: The gateway exited unexpectedly (exit code 1)."
    assert "RuntimeError: of no use today" in log


@contextlib.contextmanager
def started(folder: Path, shown: str):
    """Start a demo; yield its process, ports and output once it has printed `shown`."""
    begun = command(folder / "bought", *on_free_ports())
    with subprocess.Popen(
        begun, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True
    ) as demo:
        text = ""
        for line in demo.stdout:
            text += line
            if shown in line:
                break
        ports = {int(port) for port in re.findall(r"http://127\.0\.0\.1:(\d+)", text)}
        assert len(ports) == 2, text
        assert not any(map(is_closed, ports))
        try:
            yield demo, ports, text
        finally:
            demo.kill()


def wait_until_closed(ports: set[int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not all(map(is_closed, ports)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def ran(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python beside the demo until it exits."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_S,
    )


def refund_of_failure(gateway: str, folder: Path) -> dict:
    """Buy what fails on purpose, and return its refund once it is sent."""
    words = ["buy", "fails-on-purpose", "a boat", "--url", gateway, "--key", "demo", "--json"]
    failed = ran(folder, "-m", "gateway", *words, XDG_STATE_HOME=str(folder / "state"))
    assert failed.returncode == 3, failed.stderr
    assert "This generation fails on purpose" in failed.stderr
    task_url = f"{gateway}/api/task/{json.loads(failed.stdout)['taskId']}"
    deadline = time.monotonic() + PATIENCE_S
    with open_session() as session:
        while True:
            refund = session.get(task_url, timeout=60).json()["refund"]
            if refund["state"] == "refunded":
                return refund
            assert time.monotonic() < deadline, refund
            time.sleep(1)


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_the_running_demo_sells_to_the_examples_refunds_a_failure_and_ends_by_ctrl_c(tmp_path):
    with started(tmp_path, "Serving. Ctrl-C stops it.") as (demo, ports, text):
        gateway = re.search(r"URL +(http://127\.0\.0\.1:\d+)", text)[1]
        rpc = re.search(r"JSON-RPC +(http://127\.0\.0\.1:\d+)", text)[1]
        for example, prompt in (
            ("buy.py", "a quiet lake"),
            ("direct_with_proof.py", "é: a quiet lake"),
        ):
            bought = ran(tmp_path, str(EXAMPLES / example), prompt, GATEWAY=gateway, RPC=rpc)
            assert bought.returncode == 0, bought.stderr
            assert "completed paid by 0x" in bought.stdout
            with Image.open(tmp_path / "bought.png") as picture:
                assert picture.size == (1024, 1024)
            (tmp_path / "bought.png").unlink()
        assert refund_of_failure(gateway, tmp_path)["message"] == "It was sent back to you."
        demo.send_signal(signal.SIGINT)
        assert demo.wait(PATIENCE_S) == 0
    wait_until_closed(ports)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_chain_and_gateway_end_with_a_demo_that_is_killed(tmp_path):
    with started(tmp_path, "Give the buyer play money") as (demo, ports, _):
        demo.kill()
        assert demo.wait(PATIENCE_S) == -signal.SIGKILL
    wait_until_closed(ports)
