"""The worked example of the docs, run as somebody would: against `gateway demo`."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "direct_with_proof.py"


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY")}
    path = os.pathsep.join(sys.path)
    return {**kept, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **more}


@pytest.fixture
def demo(tmp_path):
    """Yield what the demo printed until it serves."""
    options = ["--port", "0", "--rpc-port", "0", "--output", str(tmp_path / "out")]
    command = [sys.executable, "-m", "gateway", "demo", *options]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, env=environment(), text=True
    ) as process:
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("Serving"):
                break
        yield said
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


# In short: clients/examples runs the example, and demo/ starts the demo.
@pytest.mark.full
def test_the_worked_example_buys_a_picture_from_the_running_demo(demo, tmp_path):
    gateway = re.search(r"URL +(http://127\.0\.0\.1:\d+)", demo)[1]
    rpc = re.search(r"JSON-RPC +(http://127\.0\.0\.1:\d+)", demo)[1]
    bought = subprocess.run(
        [sys.executable, EXAMPLE, "é: a quiet lake"],
        cwd=tmp_path,
        env=environment(GATEWAY=gateway, RPC=rpc),
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert bought.returncode == 0, bought.stderr
    assert "completed paid by 0x" in bought.stdout
    with Image.open(tmp_path / "bought.png") as picture:
        assert picture.size == (1024, 1024)
