"""docs/go-live.md: its commands exist, and those of the first step sell."""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from PIL import Image

from gateway.cli import main
from gateway.settings import Settings

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "go-live.md").read_text("utf-8")
STEPS = re.split(r"^## \d\. .*$", PAGE, flags=re.MULTILINE)[1:]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SERVE = "gateway serve --play"
PATIENCE_S = 600


def blocks(text, language):
    return [found for kind, found in BLOCK.findall(text) if kind == language]


def commands():
    lines = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
    return sorted({line for line in lines if line.startswith("gateway ")})


@pytest.mark.parametrize("line", commands())
def test_each_command_of_the_page_is_one(line, tmp_path, monkeypatch):
    """Click parses the line; nothing is run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper.pdf").touch()
    _, *words = shlex.split(line)
    command, context = main, click.Context(main, info_name="gateway")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.get_command(context, words.pop(0))
        assert command is not None, line
    command.make_context("gateway", words)


def test_each_setting_of_the_page_is_one():
    files = [tomllib.loads(block) for block in blocks(PAGE, "toml")]
    (written,) = re.findall(r"<<'END'\n(.*?)^END$", PAGE, re.DOTALL | re.MULTILINE)
    files.append(tomllib.loads(written))
    names = {name for file in files for name in file}
    assert len(names) > 8
    assert names <= {field.name for field in Settings.__attrs_attrs__}


def test_each_step_has_commands_and_what_must_be_seen():
    assert len(STEPS) == 3
    for step in STEPS:
        assert "**Seen:**" in step
        assert len(blocks(step, "sh")) > 1


# -- step 1, as a person does it


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def script(port):
    """Return the commands of step 1 after the installation, with the gateway in the background."""
    _, *rest = blocks(STEPS[0], "sh")
    text = "\n".join(rest).replace("8080", str(port))
    assert text.count(f"{SERVE}\n") == 1
    # A person reads on while it starts, and has two terminals.
    answers = f"curl --silent --fail --output ready http://127.0.0.1:{port}/api/health"
    wait = f"until {answers}; do kill -0 $!; sleep 0.2; done"
    return "set -eu\n" + text.replace(f"{SERVE}\n", f"{SERVE} > gateway.log &\n{wait}\n")


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("go-live")
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    shim = bin_folder / "gateway"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gateway "$@"\n')
    shim.chmod(0o755)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("GATEWAY_")}
    path = os.pathsep.join([str(bin_folder), kept["PATH"]])
    imports = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    printed = folder / "printed"
    with printed.open("w") as output:
        process = subprocess.Popen(
            ["bash", "-c", script(free_port())],
            cwd=folder,
            env={**kept, "PATH": path, "PYTHONPATH": imports, "HOME": str(folder)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        code = process.wait(5 * PATIENCE_S)
        yield folder / "my-shop", code, printed.read_text()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        process.wait()


@pytest.mark.full
def test_the_first_step_goes_from_an_empty_folder_to_a_sale(followed):
    folder, code, output = followed
    assert code == 0, output + (folder / "gateway.log").read_text()
    assert re.search(r"^paid +0\.04 ", output, re.MULTILINE)
    assert re.search(r"^transaction +0x[0-9a-f]{64}$", output, re.MULTILINE)
    assert re.search(r"gateway_openai .*GATEWAY_OPENAI_API_KEY", output)
    (bought,) = re.findall(r"^file +(.+)$", output, re.MULTILINE)
    with Image.open(folder / bought) as picture:
        assert min(picture.size) > 500


@pytest.mark.full
def test_nothing_of_the_rehearsal_is_left_in_the_folder(followed):
    folder, _, output = followed
    (bought,) = re.findall(r"^file +(.+)$", output, re.MULTILINE)
    names = {path.name for path in folder.iterdir()}
    assert names == {"gateway.toml", "gateway.log", "ready", Path(bought).name}
