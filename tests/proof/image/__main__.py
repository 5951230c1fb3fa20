"""`make image-check`: builds the image in clean roots without Docker, and runs it.

It needs root, Linux with namespaces, and debootstrap. The base is Debian with its own Python
instead of Docker's Python image; everything else follows the Dockerfile.
"""

import argparse
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from http import HTTPStatus
from pathlib import Path

import click

from tests.proof.image.build import Build, Built
from tests.proof.image.clean_root import CleanRoot, debian, downloaded
from tests.proof.image.container import USER_ID, Container
from tests.proof.image.dockerfile import stages

ROOT = Path(__file__).parents[3]
_PATIENCE_S = 240.0
_MB = 1_000_000
# Of /venv. It had 245 in 2026-11; without deploy/prune.py it would have 320.
_LARGEST_MB = 265


def main() -> int:
    """Build, measure, serve, build again, buy."""
    options = _options()
    if sentence := _missing():
        click.echo(sentence, err=True)
        return 1
    base = debian(options.folder, options.suite)
    image = _built(base, options.folder / "image", "image")
    _print_sizes(base, image)
    _check_serve(image)
    _check_read_only(image)
    if options.twice:
        _check_same_bytes(image, _built(base, options.folder / "again", "image"))
    _check_demo(_built(base, options.folder / "demo", "image-demo"))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make image-check", description=__doc__)
    parser.add_argument("--suite", default="trixie", help="Debian's release for the base")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "image-check")
    parser.add_argument("--twice", action="store_true", help="build twice and compare the bytes")
    return parser.parse_args()


def _missing() -> str:
    if os.geteuid() != 0:
        return "`make image-check` makes root folders of a Debian: run it as root."
    tools = [one for one in ("debootstrap", "unshare", "chroot") if not shutil.which(one)]
    return f"Not installed: {', '.join(tools)}. Try apt-get install debootstrap." if tools else ""


def _built(base: CleanRoot, folder: Path, lock: str) -> Built:
    click.echo(f"--- {lock} into {folder.name}/")
    _, all_stages = stages((ROOT / "Dockerfile").read_text("utf-8"))
    wheels = folder / "wheels"
    lists = [ROOT / "deploy" / f"{name}.txt" for name in (lock, "image-build")]
    downloaded(lists, base.python_version(), wheels)
    arguments = {"LOCK": lock}
    return Build(checkout=ROOT, base=base, wheels=wheels, folder=folder, arguments=arguments).run(
        all_stages
    )


def _size_mb(folder: Path) -> float:
    done = subprocess.run(
        ["du", "--summarize", "--bytes", "--one-file-system", folder],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout.split()[0]) / _MB


def _print_sizes(base: CleanRoot, image: Built) -> None:
    whole, bare = _size_mb(image.root.folder), _size_mb(base.folder)
    click.echo(f"base {bare:.0f} MB, image {whole:.0f} MB, /venv {_size_mb(_venv(image)):.0f} MB")
    _expect(_size_mb(_venv(image)) <= _LARGEST_MB, f"/venv has more than {_LARGEST_MB} MB")
    site = next(_venv(image).glob("lib/python*/site-packages"))
    largest = sorted(((_size_mb(one), one.name) for one in site.iterdir()), reverse=True)[:8]
    click.echo("largest: " + ", ".join(f"{name} {size:.0f}" for size, name in largest))


def _venv(image: Built) -> Path:
    return image.root.inside("/venv")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _check_serve(image: Built) -> None:
    port = _free_port()
    container = Container.started(
        image,
        GATEWAY_BIND=f"127.0.0.1:{port}",
        GATEWAY_WALLET="0x" + "11" * 20,
        GATEWAY_SETTLEMENT_KEY="11" * 32,
        # No server listens there: serving must not wait for the chain.
        GATEWAY_RPC_URLS=f"http://127.0.0.1:{_free_port()}",
        GATEWAY_SANDBOX="true",
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/health", container)
        _expect(container.users() == {USER_ID}, f"it runs as {container.users()}")
        _expect(not container.may_gain_rights(), "it may gain rights")
        _expect(container.stopped(_PATIENCE_S) == 0, "it does not end with code 0")
    finally:
        container.process.kill()
    owner = image.root.inside("/data/gateway.db").stat().st_uid
    _expect(owner == USER_ID, f"/data/gateway.db belongs to {owner}")
    click.echo(f"gateway serve: /api/health 200 as user {USER_ID}, ends with code 0")


def _check_read_only(image: Built) -> None:
    container = Container.started(image, "sh", "-c", "touch /data/new && touch /venv/new")
    _expect(container.ended(_PATIENCE_S) != 0, "it may write into /venv")
    _expect(image.root.inside("/data/new").exists(), "it may not write into /data")


def _check_demo(image: Built) -> None:
    ports = [f"--port={_free_port()}", f"--rpc-port={_free_port()}"]
    demo = ("gateway", "demo", "--once", *ports, "--output=/data/bought")
    container = Container.started(image, *demo)
    try:
        _expect(container.ended(_PATIENCE_S) == 0, "`gateway demo --once` fails")
    finally:
        container.process.kill()
    bought = sorted(one.name for one in image.root.inside("/data/bought").iterdir())
    _expect(len(bought) > 1, f"the demo bought {bought}")
    click.echo(f"gateway demo --once: bought {', '.join(bought)}")


def _wait_for(url: str, container: Container) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline and container.process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                _expect(answer.status == HTTPStatus.OK, f"{url} answers {answer.status}")
                return
        except OSError:
            time.sleep(0.5)
    raise SystemExit(f"make image-check: {url} gave no answer")


def _expect(holds: object, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"make image-check: {otherwise}")


def _bytes_of(folder: Path) -> dict[str, tuple[int, str]]:
    """Return the mode and the content hash of every file in a folder, by path."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            contents = str(path.readlink())
        else:
            contents = "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, contents)
    return found


def _check_same_bytes(one: Built, other: Built) -> None:
    first, second = _bytes_of(_venv(one)), _bytes_of(_venv(other))
    differ = sorted(name for name in first | second if first.get(name) != second.get(name))
    _expect(not differ, f"a second build differs in {len(differ)} files: {differ[:10]}")
    click.echo(f"built twice: the same {len(first)} files in /venv")


if __name__ == "__main__":
    sys.exit(main())
