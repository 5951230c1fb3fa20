"""`gateway reload`: a running process follows its files, and a closed terminal still ends it."""

import base64
import os
import signal
import subprocess
import sys
import threading

import pytest
from werkzeug import Response

from tests.conftest import PNG, Payer
from tests.proof.process.gateway_process import PATIENCE_S, until

PHOTO = """
title = "Photo"
capability = "text-to-image"
price = "{price}"
free_to_repeat = true
request.url = "{url}/make"
request.json = {{ prompt = "{{prompt}}" }}
result = {{ kind = "base64", path = "images[0]", media_type = "image/png" }}
"""


class Server:
    """The operator's API, which answers when a test lets it."""

    def __init__(self, httpserver) -> None:
        self.url = httpserver.url_for("").rstrip("/")
        self.go, self.asked = threading.Event(), threading.Event()
        self.go.set()
        httpserver.expect_request("/make").respond_with_handler(self._answer)
        httpserver.expect_request("/").respond_with_data("up")

    def _answer(self, request) -> Response:
        self.asked.set()
        self.go.wait(PATIENCE_S)
        return Response(f'{{"images": ["{base64.b64encode(PNG).decode()}"]}}')


@pytest.fixture
def server(httpserver):
    found = Server(httpserver)
    yield found
    found.go.set()


@pytest.fixture
def folder(served, server):
    folder = served.folder / "endpoints"
    folder.mkdir()
    (folder / "photo.toml").write_text(PHOTO.format(price="0.03", url=server.url))
    served.environment["GATEWAY_HTTP_ENDPOINTS"] = str(folder)
    return folder


def reload(served) -> tuple[int, str, str]:
    """Run the command; return its exit code, output and errors."""
    command = [sys.executable, "-m", "gateway", "reload"]
    done = subprocess.run(
        command, cwd=served.folder, env=served.environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_files_change_while_the_gateway_sells(served, folder, server, chain):
    code, _, errors = reload(served)
    assert code == 1
    assert "No gateway runs with the data folder" in errors
    served.start()
    payer = Payer(chain)
    server.go.clear()
    begun = served.bought(payer.header(30_000), "photo")
    server.asked.wait(PATIENCE_S)
    # Between a 402 and its payment; a task runs.
    signed = payer.header(30_000)
    (folder / "photo.toml").write_text(PHOTO.format(price="0.05", url=server.url))
    (folder / "portrait.toml").write_text(PHOTO.format(price="0.02", url=server.url))
    until(lambda: reload(served) == (0, "gateway_http: added portrait; changed photo.\n", ""))
    honoured = served.bought(signed, "photo")
    portrait = served.bought(payer.header(20_000), "portrait")
    # Between a payment and its request to the server.
    (folder / "photo.toml").unlink()
    assert reload(served) == (0, "gateway_http: removed photo.\n", "")
    assert served.buy("", "photo")[0] == 404
    late = served.bought(payer.header(50_000), "photo")
    (folder / "sketch.toml").write_text("price = 7")
    code, out, errors = reload(served)
    assert (code, out, errors.count("\n")) == (1, "", 1)
    assert errors.startswith("gateway_http keeps its endpoints as they were: sketch.toml is not")
    assert served.buy("", "portrait")[0] == 402
    server.go.set()
    for task_id in (begun, honoured, portrait, late):
        until(lambda each=task_id: served.task(each, wait_s=20)["status"] == "completed")


HASTY = """
import os, signal
from gateway import hookimpl

@hookimpl
def register_endpoints(register, settings):
    os.kill(os.getpid(), signal.SIGHUP)
"""


def test_a_reload_during_the_start_waits_for_its_end(served):
    served.install("hasty", HASTY)
    served.start()
    lock = served.folder / "data" / "gateway.lock"
    until(lambda: '"reloads": 1' in lock.read_text())


@pytest.mark.parametrize("is_nohup", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_closed_terminal_still_ends_the_gateway_unless_under_nohup(served, folder, is_nohup):
    process, terminal = os.forkpty()
    if process == 0:
        os.chdir(served.folder)
        # These tests may run under nohup themselves.
        signal.signal(signal.SIGHUP, signal.SIG_IGN if is_nohup else signal.SIG_DFL)
        os.execve(served.command[0], served.command, served.environment)
    reader = threading.Thread(target=_drain, args=(terminal,), daemon=True)
    reader.start()

    def is_up() -> bool:
        try:
            return served.request("GET", "/api/health")[0] == 200
        except OSError:
            return False

    until(is_up)
    os.kill(process, signal.SIGHUP)
    lock = served.folder / "data" / "gateway.lock"
    until(lambda: '"reloads": 1' in lock.read_text())
    assert is_up()
    os.close(terminal)
    if is_nohup:
        until(lambda: '"reloads": 2' in lock.read_text())
        assert is_up()
        os.kill(process, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) in (0, 1)


def _drain(terminal: int) -> None:
    """Read the output of the gateway until the terminal is closed."""
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        return
