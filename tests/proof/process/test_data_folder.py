"""The data folder: private, and never root's if it belongs to another user."""

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.settings import variable
from gateway.store.data_folder import make_private
from tests.conftest import buy, running
from tests.migrated_databases import put_database

ROOT = Path(__file__).parents[3]
USER = 12345
NAMES = ("base_url", "wallet", "data_dir", "settlement_key")


def _open_to_others(folder: Path) -> dict[str, str]:
    """Return the paths that other users may access, with their modes."""
    paths = (folder, *folder.rglob("*"))
    modes = {str(path.relative_to(folder)): path.lstat().st_mode for path in paths}
    return {name: oct(mode) for name, mode in modes.items() if stat.S_IMODE(mode) & 0o077}


@pytest.fixture
def permissive_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def variables(settings) -> dict[str, str]:
    found = {variable(name): str(getattr(settings, name)) for name in NAMES}
    return found | {"GATEWAY_RPC_URLS": ",".join(settings.rpc_urls)}


async def test_everything_a_gateway_writes_is_private(
    permissive_umask, settings, provider, payer, variables
):
    async with running(settings, provider) as gateway:
        answer = await buy(gateway, payer.header())
        await gateway.wait((await answer.get_json())["taskId"])
        names = {path.name for path in settings.data_dir.rglob("*")}
        assert {"gateway.db", "gateway.db-wal", "gateway.db-shm", "outputs"} <= names
        assert any(name.endswith(".png") for name in names)
        assert _open_to_others(settings.data_dir) == {}
    copy = settings.data_dir / "copy.db"
    for words in (("backup", str(copy)), ("restore", str(copy))):
        os.umask(0)
        done = CliRunner().invoke(main, words, env=variables)
        assert done.exit_code == 0, done.output
    assert len(list(settings.data_dir.glob("gateway.db.before-restore-*"))) >= 1
    assert (settings.data_dir / "gateway.lock").exists()
    assert _open_to_others(settings.data_dir) == {}


def test_what_was_open_before_is_tightened(tmp_path):
    data = tmp_path / "data"
    lease = data / "outputs" / "lease-1"
    lease.mkdir(parents=True)
    secret = tmp_path / "elsewhere"
    files = [data / "gateway.db", data / "gateway.db-wal", data / "gateway.lock", lease / "0.png"]
    for file in (*files, secret, data / "tool"):
        file.write_text("x")
        file.chmod(0o666)
    (data / "tool").chmod(0o755)
    (data / "gateway.db-old").symlink_to(secret)
    for folder in (data, data / "outputs", lease):
        folder.chmod(0o777)
    make_private(data)
    assert not any(_mode(path) & 0o077 for path in (data, data / "outputs", lease, *files))
    # Not the gateway's: one is unreachable for others, the other is elsewhere.
    assert (_mode(data / "tool"), _mode(secret)) == (0o755, 0o666)


def test_a_folder_that_all_users_share_stays_as_it_is(tmp_path):
    tmp_path.chmod(0o1777)
    make_private(tmp_path)
    assert _mode(tmp_path) == 0o1777


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# -- as root, on a volume of the gateway's user


def _interpreter() -> str | None:
    """Return a Python of this version that other users may run, or None."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for path in (sys.executable, f"/usr/bin/python{version}"):
        real = Path(path).resolve()
        if real.exists() and _is_open_to_all(real):
            return str(real)
    return None


def _is_open_to_all(path: Path) -> bool:
    """Return whether other users may enter every folder above a path."""
    return all(_mode(parent) & 0o001 for parent in path.parents)


# Root's own home is closed to others.
as_root = pytest.mark.skipif(
    os.geteuid() != 0
    or _interpreter() is None
    or not _is_open_to_all(ROOT / "gateway")
    or not _is_open_to_all(Path(sysconfig.get_paths()["purelib"]) / "gateway"),
    reason="only root can become another user, who must be able to run this Python and its code",
)


@pytest.fixture
def volume() -> Iterator[Path]:
    """Yield a folder of another user, below folders that all may enter."""
    above = Path(tempfile.mkdtemp(prefix="gateway-volume-"))
    above.chmod(0o755)
    data = above / "data"
    data.mkdir(0o755)
    os.chown(data, USER, USER)
    yield data
    shutil.rmtree(above)


@pytest.fixture
def command(volume, variables):
    """Return a function that runs a `gateway` command, as root or as the volume's owner."""
    packages = sysconfig.get_paths()["purelib"]
    paths = [ROOT, ROOT / "providers", ROOT / "plugins", packages]
    environment = variables | {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GATEWAY_DATA_DIR": str(volume),
    }

    def run(
        *words: str, user: int = 0, python: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python or _interpreter(), "-m", "gateway", *words],
            cwd="/",
            env=environment,
            user=user,
            group=user,
            extra_groups=[],
            umask=0o022,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def _not_of_user(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.lstat().st_uid != USER]


def _put_database(volume: Path) -> None:
    """Put the owner's database into the volume: of the commands only `serve` makes one."""
    os.chown(put_database(volume / "gateway.db"), USER, USER)


def _write_as_user(volume: Path) -> None:
    """Write the database in a process of the volume's owner."""
    write = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "db.execute(\"INSERT INTO meta VALUES ('written', 'yes')\"); db.close()"
    )
    subprocess.run(
        [_interpreter(), "-c", write, str(volume / "gateway.db")],
        user=USER,
        group=USER,
        extra_groups=[],
        check=True,
    )


@pytest.mark.full
@as_root
def test_commands_of_root_leave_nothing_of_roots_on_the_volume(command, volume):
    checked = command("check")
    assert "database" in checked.stdout, checked.stderr
    _put_database(volume)
    copy = volume / "copy.db"
    for words in (
        ("backup", str(copy)),
        ("restore", str(copy)),
        ("encrypt-key", str(volume / "key.json"), "--key", "5e" * 32, "--password", "secret"),
    ):
        done = command(*words)
        assert done.returncode == 0, done.stderr
        assert _not_of_user(volume) == []
        assert {path.name for path in volume.iterdir()} >= {"gateway.db"}
    _write_as_user(volume)
    assert _open_to_others(volume) == {}


@pytest.mark.full
@as_root
def test_what_root_left_before_is_given_back_and_nothing_else_by_a_link(command, volume):
    put_database(volume / "gateway.db")
    lease = volume / "outputs" / "lease-1"
    lease.mkdir(parents=True)
    elsewhere = volume.parent / "elsewhere"
    elsewhere.touch()
    (volume / "gateway.db-old").symlink_to(elsewhere)
    (lease / "0.png").touch()
    for path in (volume / "gateway.db", volume / "gateway.lock", lease.parent):
        path.touch()
        os.chown(path, 0, 0)
    assert command("tasks").returncode == 0
    assert _not_of_user(volume) == []
    assert elsewhere.stat().st_uid == 0
    _write_as_user(volume)
    # A symlink in place of a folder.
    folder = volume.parent / "a folder"
    folder.mkdir()
    (folder / "shadow").touch()
    shutil.rmtree(volume / "outputs")
    (volume / "outputs").symlink_to(folder)
    os.chown(volume / "outputs", USER, USER, follow_symlinks=False)
    assert command("tasks").returncode == 0
    assert (folder.stat().st_uid, (folder / "shadow").stat().st_uid) == (0, 0)


@as_root
@pytest.mark.parametrize(("words", "depth"), [(("tasks",), 0), (("check",), 0), (("serve",), 1)])
def test_a_user_who_may_not_enter_the_folder_is_told_so(command, volume, words, depth):
    (volume, volume.parent)[depth].chmod(0o700)
    done = command(*words, user=USER + 1)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    output = " ".join((done.stdout + done.stderr).split())
    assert "Cannot open the folder" in output
    assert "Run this as the folder's owner" in output


@as_root
def test_a_copy_where_the_volumes_owner_may_not_write_is_refused_with_a_way_out(command, volume):
    _put_database(volume)
    private = volume.parent / "private"
    private.mkdir(0o700)
    done = command("backup", str(private / "copy.db"))
    assert done.returncode == 1
    assert f"such as {volume / 'copy.db'}" in done.stderr
    (private / "copy.db").write_bytes(b"")
    done = command("restore", str(private / "copy.db"))
    assert done.returncode == 1
    assert "chown" in done.stderr
    assert _not_of_user(volume) == []


@as_root
def test_an_owner_who_may_not_run_this_python_is_told_before_anything_is_half_there(
    command, volume
):
    private = volume.parent / "private"
    private.mkdir(0o700)
    (private / "python").symlink_to(_interpreter())
    done = command("tasks", python=private / "python")
    assert done.returncode == 1
    assert f"who may not run {private / 'python'}" in done.stderr
    assert "Traceback" not in done.stderr


@as_root
def test_root_that_cannot_become_the_owner_says_so(monkeypatch, settings, variables):
    settings.data_dir.mkdir()
    os.chown(settings.data_dir, USER, USER)

    def refuse(_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setgroups", refuse)
    done = CliRunner().invoke(main, ["tasks"], env=variables)
    assert done.exit_code == 1
    assert f"setpriv --reuid={USER}" in done.output
