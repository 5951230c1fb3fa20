"""`gateway serve --play` and `gateway plugins dev` as processes: sales, reload, and a clean end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from gateway_demo.sample import sample_pdf
from gateway_testing.new_plugin import KINDS, write_project
from gateway_testing.provider.samples import PICTURE

pytestmark = pytest.mark.full
PATIENCE_S = 600


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(folder, **more):
    kept = {name: text for name, text in os.environ.items() if not name.startswith("GATEWAY_")}
    path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    return {**kept, "PYTHONPATH": path, "TMPDIR": str(folder), **more}


def wait_until(is_so):
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


class Rehearsal:
    """A running command on a free port, whose temporary files are in `temporary`."""

    def __init__(self, folder, temporary, *words, **variables):
        self.url = f"http://127.0.0.1:{variables.pop('port')}"
        self.folder, self.temporary = folder, temporary
        temporary.mkdir()
        self.log = temporary.parent / "log"
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gateway", *words],
                cwd=folder,
                env=environment(temporary, **variables),
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def offers(self):
        """Return the prices by slug; none while the gateway does not answer."""
        assert self.process.poll() is None, self.log.read_text()
        try:
            url = f"{self.url}/.well-known/agent-manifest.json"
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                offers = json.load(answer)["availableEndpoints"]
                return {each["slug"]: str(each["price"]) for each in offers}
        except OSError:
            return {}

    def buy(self, *words):
        order = ["buy", *words, "--url", self.url, "--key", "demo", "--yes", "--out", "bought"]
        done = subprocess.run(
            [sys.executable, "-m", "gateway", *order],
            cwd=self.temporary.parent,
            env=environment(self.temporary, HOME=str(self.temporary.parent)),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr + self.log.read_text()
        return done.stdout

    def list_tasks(self, **variables):
        """Return the ids that `gateway tasks` prints with the variables of the log's hint."""
        hint = re.search(r"^ +export (.+)$", self.log.read_text(), re.MULTILINE)[1]
        hinted = dict(word.split("=", 1) for word in hint.split())
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "tasks", "--json"],
            cwd=self.folder,
            env=environment(self.temporary, **{**variables, **hinted}),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [row["task"] for row in json.loads(done.stdout)]

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)
        return self.process.returncode


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_sale_of_each_kind_of_new_plugin_succeeds(tmp_path, kind):
    folder, port = write_project("acme", tmp_path, kind), free_port()
    photo, paper = tmp_path / "photo.png", tmp_path / "paper.pdf"
    photo.write_bytes(PICTURE)
    paper.write_bytes(sample_pdf())
    slug = f"acme-{KINDS[kind].slug}"
    words = {"document": ["--file", str(paper)], "edit": ["winter", "--file", str(photo)]}
    run = Rehearsal(folder, tmp_path / "t", "plugins", "dev", "--port", str(port), port=port)
    try:
        wait_until(lambda: slug in run.offers())
        assert "transaction" in run.buy(slug, *words.get(kind, ["a boat"]))
    finally:
        run.end()


def test_the_gateway_follows_the_code_also_through_a_mistake(tmp_path):
    folder, port = write_project("acme", tmp_path), free_port()
    plugin = folder / "src" / "gateway_acme.py"
    right, toy = plugin.read_text(), (folder / "toy_api.py").read_text()
    run = Rehearsal(folder, tmp_path / "t", "plugins", "dev", "--port", str(port), port=port)
    try:
        wait_until(lambda: run.offers().get("acme-picture", "").startswith("0.05"))
        plugin.write_text(right.replace('"0.05"', '"0.07"'))
        wait_until(lambda: run.offers().get("acme-picture", "").startswith("0.07"))
        plugin.write_text(f"{right}\nnot python!")
        wait_until(lambda: run.offers().keys() == {"document-parser"})
        assert "SyntaxError" in run.log.read_text()
        (folder / "toy_api.py").write_text("broken!")
        plugin.write_text(right)
        wait_until(lambda: "The toy vendor exited" in run.log.read_text())
        (folder / "toy_api.py").write_text(toy)
        wait_until(lambda: run.offers().get("acme-picture", "").startswith("0.05"))
        assert "paid" in run.buy("acme-picture", "a boat")
    finally:
        code = run.end(signal.SIGTERM)
    assert code == 0
    assert list(run.temporary.iterdir()) == []
    assert {each.name for each in folder.iterdir()} >= {"src", "tests", "toy_api.py"}
    assert not (folder / "gateway-data").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_rehearsal_ends_cleanly_and_leaves_nothing(tmp_path, number):
    port, shop = free_port(), tmp_path / "shop"
    shop.mkdir()
    real = {"GATEWAY_DATA_DIR": str(shop / "real"), "GATEWAY_BACKUP_URL": f"file://{shop}/copies"}
    real["GATEWAY_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:9/real"
    bound = {"GATEWAY_BIND": f"0.0.0.0:{port}", "GATEWAY_SANDBOX": "true"}
    run = Rehearsal(shop, tmp_path / "t", "serve", "--play", port=port, **real, **bound)
    try:
        wait_until(lambda: "sandbox-image" in run.offers())
        bought = run.buy("sandbox-image", "a boat")
        assert run.list_tasks(**real) == [re.search(r"task +(\S+)", bought)[1]]
    finally:
        code = run.end(number)
    assert code == 0, run.log.read_text()
    assert list(run.temporary.iterdir()) == []
    assert list(shop.iterdir()) == []
    assert "Traceback" not in run.log.read_text()
