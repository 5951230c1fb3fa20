"""The servers of `make bench-peers`: the gateway, and peers with the official x402 middleware."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
from place import CLIENT_CORE, environment
from processes import free_port, process, stub_chain, wait_listening
from tree import BENCH, HERE, Tree, tree_at

ADDRESS_HEADER = "X-Forwarded-For"
_SOURCES, _INSTALLED = BENCH / "peers", BENCH / ".peers"


@attrs.frozen(kw_only=True)
class Command:
    """The command line of a server."""

    program: str
    arguments: list[str]
    env: dict[str, str]


@attrs.frozen(kw_only=True)
class Contestant:
    """A server to measure; `command` makes its command from a port and a data folder."""

    name: str
    command: Callable[[int, Path], Command]
    task_id: str
    # A gateway's; None for a peer.
    tree: Tree | None = None
    poll_from: str = "SQLite"


def _gateways(tree: Tree, rpc_url: str, task_id: str) -> Iterator[Contestant]:
    """Yield a tree's gateway once per server that it can run on."""
    for settings in tree.servers:

        def command(port: int, data: Path, settings: dict[str, str] = settings) -> Command:
            env = environment(
                tree,
                data_dir=data,
                rpc_urls=rpc_url,
                bind=f"127.0.0.1:{port}",
                client_ip_header=ADDRESS_HEADER,
                limit_x402="1000000/60s",  # the default window, so that addresses are kept as long
                **settings,
            )
            return Command(program=tree.python, arguments=["-m", "gateway", "serve"], env=env)

        name = "gateway" if tree is HERE else f"gateway {tree.name}"
        yield Contestant(
            name=f"{name}, {settings.get('server', 'hypercorn')}",
            command=command,
            task_id=task_id,
            tree=tree,
        )


def _peers(facilitator_url: str, task_id: str) -> list[Contestant]:
    """Return the installed peers."""
    if not (_INSTALLED / ".installed").exists():
        return []
    for source in _SOURCES.iterdir():
        shutil.copy(source, _INSTALLED)  # Node searches packages beside the program only
    python = str(_INSTALLED / "venv/bin/python")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def command(program: str, script: str) -> Callable[[int, Path], Command]:
        return lambda port, data: Command(
            program=program,
            arguments=[str(_INSTALLED / script), str(port), facilitator_url, str(data)],
            env=env | {"NODE_ENV": "production"},
        )

    programs = (
        ("uvicorn alone, no checks", python, "bare_peer.py", "a constant"),
        ("FastAPI + x402, uvicorn", python, "fastapi_peer.py", "aiosqlite"),
        ("Express + x402", "node", "express_peer.mjs", "a Map"),
        ("Hono + x402", "node", "hono_peer.mjs", "a Map"),
    )
    return [
        Contestant(name=name, command=command(*run), task_id=task_id, poll_from=poll_from)
        for name, *run, poll_from in programs
    ]


@contextlib.contextmanager
def all_servers(old: Path | None) -> Iterator[list[Contestant]]:
    """Run the servers' dependencies within the block; yields the servers, the gateways first."""
    task_id = json.loads((_SOURCES / "terms.json").read_text())["task"]["taskId"]
    with contextlib.ExitStack() as stack:
        rpc_url = stack.enter_context(stub_chain())
        port = free_port()
        script = [str(_SOURCES / "facilitator.py"), str(port)]
        running = stack.enter_context(process(script, environment(), core=CLIENT_CORE))
        wait_listening(port, running)
        trees = [HERE, *([tree_at(old)] if old else [])]
        gateways = [one for tree in trees for one in _gateways(tree, rpc_url, task_id)]
        yield [*gateways, *_peers(f"http://127.0.0.1:{port}", task_id)]
