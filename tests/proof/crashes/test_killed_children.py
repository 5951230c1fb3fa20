"""The real server killed while its children work: they hold no resources of their own.

After an immediate restart the port is free, and every paid local generation is delivered.
"""

import base64
import contextlib
import os
import sys
from pathlib import Path

import pytest

from gateway_demo.sample import sample_pdf
from tests.conftest import Payer, one_server
from tests.proof.process.gateway_process import Gateway, until
from tests.proof.sandbox.processes import children_of, is_alive, of_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
_MOST_PICTURES = 60
_LISTENING = "0A"  # the state of a socket in /proc/net/tcp


@pytest.fixture
def gateway(tmp_path, chain, key, http_server):
    settings = {"GATEWAY_SANDBOX": "true", "GATEWAY_WORKERS": "6", "GATEWAY_SERVER": http_server}
    started = Gateway(tmp_path, chain, key, **settings)
    started.start()
    yield started
    started.kill()


def bought(gateway, chain, slug, price_units, **wanted):
    about = {"X-PAYMENT": Payer(chain).header(price_units)}
    status, body = gateway.request("POST", f"/api/x402/{slug}", wanted, about)
    assert status == 200, body
    return body["taskId"]


def picture_bought(gateway, chain, name):
    return bought(gateway, chain, "sandbox-image", 20_000, prompt=f"boat {name}")


def document_bought(gateway, chain):
    file = base64.b64encode(sample_pdf()).decode()
    return bought(gateway, chain, "document-parser", 10_000, fileBase64=file, fileName="a.pdf")


def descendants(pid):
    """Return every process below one, by id, with its command line, except exited ones."""
    found = {}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for child in children_below(pid):
            found |= descendants(child)
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found[child] = of_process(child, "cmdline")
    return found


def children_below(pid):
    """Return the children of every thread: each has its own list."""
    threads = [int(thread.name) for thread in Path(f"/proc/{pid}/task").iterdir()]
    return [child for thread in threads for child in children_of(pid, thread)]


def drawing(gateway):
    return [pid for pid, command in descendants(gateway.process.pid).items() if "studio" in command]


def pictures_until_one_is_drawn(gateway, chain):
    """Buy pictures until a child is seen that draws one; return the tasks and the child.

    On a busy machine a picture may be done before anything is seen of it.
    """
    tasks = []
    for at in range(_MOST_PICTURES):
        tasks.append(picture_bought(gateway, chain, at))
        with contextlib.suppress(AssertionError):
            return tasks, until(lambda: drawing(gateway), patience_s=1)[0]
    raise AssertionError(f"none of {_MOST_PICTURES} pictures was seen")


def ended(gateway, task_id):
    return until(lambda: finished(gateway, task_id), patience_s=300)


def finished(gateway, task_id):
    task = gateway.task(task_id, wait_s=20)
    return task if task["status"] in {"completed", "failed"} else None


def opened(pid):
    """Return a process's open files except the standard three; empty once it has exited."""
    found = set()
    # The child may open and close files during this loop, or exit.
    with contextlib.suppress(FileNotFoundError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                # Anonymous inodes, as of an epoll, have the same name in every process.
                if int(link.name) > 2 and "anon_inode" not in str(link.readlink()):
                    found.add(str(link.readlink()))
    return found


def listening():
    """Return the listening sockets of this machine, as /proc/PID/fd names them."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if row[3] == _LISTENING}


@one_server
def test_every_local_generation_that_kill_9_interrupted_is_made_after_the_start(gateway, chain):
    tasks = [document_bought(gateway, chain)]
    tasks += pictures_until_one_is_drawn(gateway, chain)[0]
    gateway.kill()
    gateway.start()
    assert {ended(gateway, task)["status"] for task in tasks} == {"completed"}


@one_server
def test_children_are_confined_and_end_with_a_killed_gateway_whose_port_is_free(gateway, chain):
    for _ in range(2):
        document_bought(gateway, chain)
        _, child = pictures_until_one_is_drawn(gateway, chain)
        until(lambda child=child: "Seccomp:\t2" in of_process(child, "status"))
        assert "CapEff:\t0000000000000000" in of_process(child, "status")
        assert not opened(child) & listening()
        children = descendants(gateway.process.pid)
        assert len(children) >= 2
        gateway.kill()
        gateway.start()  # fails where the port is in use
        until(lambda children=children: not [pid for pid in children if is_alive(pid)])


@pytest.mark.skipif(os.geteuid() != 0, reason="the gateway and its children hide from others")
def test_no_child_inherits_a_socket_or_a_file_of_the_gateway(gateway, chain):
    document_bought(gateway, chain)
    pictures_until_one_is_drawn(gateway, chain)
    children = descendants(gateway.process.pid)
    ours = opened(gateway.process.pid)
    assert ours & listening()
    for pid, command in children.items():
        assert not opened(pid) & listening(), command  # also in one that was started just now
        until(lambda pid=pid: not is_alive(pid) or not opened(pid) & ours)
