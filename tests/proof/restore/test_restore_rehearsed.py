"""docs/backups.md rehearsed with real processes: root's commands, the gateway's user, a bucket."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.plugins.gateway_backups.app.conftest import bucket, s3
from tests.proof.process.gateway_process import free_port, until
from tests.proof.process.test_data_folder import ROOT, _interpreter, as_root

__all__ = ["bucket", "s3"]
USER = 10001


class Machine:
    """A machine on Fly: a volume, secrets, and one gateway as the volume's owner."""

    def __init__(self, volume: Path, settings, bucket) -> None:
        self.volume = volume
        self.log = volume.parent / "log"
        self.port = free_port()
        paths = (ROOT, ROOT / "providers", ROOT / "plugins", sysconfig.get_paths()["purelib"])
        self.secrets = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GATEWAY_BASE_URL": f"http://127.0.0.1:{self.port}",
            "GATEWAY_BIND": f"127.0.0.1:{self.port}",
            "GATEWAY_WALLET": settings.wallet,
            "GATEWAY_RPC_URLS": ",".join(settings.rpc_urls),
            "GATEWAY_SETTLEMENT_KEY": str(settings.settlement_key),
            "GATEWAY_DATA_DIR": str(volume),
            "GATEWAY_SANDBOX": "true",
            "GATEWAY_MIN_FREE_DISK_MB": "0",
            "GATEWAY_BACKUP_URL": f"s3://{bucket.name}/gateway",
            "GATEWAY_BACKUP_S3_ENDPOINT": bucket.endpoint,
            "GATEWAY_BACKUP_S3_REGION": bucket.region,
            "GATEWAY_BACKUP_S3_ACCESS_KEY_ID": bucket.access_key_id,
            "GATEWAY_BACKUP_S3_SECRET_ACCESS_KEY": bucket.secret_access_key,
        }
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [_interpreter(), "-m", "gateway", "serve"],
                cwd="/",
                env=self.secrets,
                user=USER,
                group=USER,
                extra_groups=[],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until(self._is_up)

    def _is_up(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return self.ask("/api/health")[0] == 200

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(240)
            self.process = None

    def restart(self, **secrets: str) -> None:
        self.stop()
        self.secrets.update(secrets)
        self.start()

    def ask(self, path: str, body: dict | None = None) -> tuple[int, dict]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(self.secrets["GATEWAY_BASE_URL"] + path, data, headers)
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())
        except OSError:
            return 0, {}

    def pay(self, tx_hash: str) -> tuple[int, str | None]:
        body = {"slug": "sandbox-image", "prompt": "a boat", "txHash": tx_hash}
        status, answer = self.ask("/api/proxy-generate", body)
        return status, answer.get("code")

    def console(self, *words: str) -> str:
        """Run a command as root, like `fly ssh console`; returns its output."""
        done = subprocess.run(
            [_interpreter(), "-m", "gateway", *words],
            cwd="/",
            env=self.secrets,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def logged(self, event: str) -> list[dict]:
        lines = (line for line in self.log.read_text().splitlines() if line.startswith("{"))
        return [line for line in map(json.loads, lines) if line["event"] == event]


@pytest.fixture
def machine(settings, bucket):
    above = Path(tempfile.mkdtemp(prefix="gateway-volume-"))
    above.chmod(0o755)
    volume = above / "data"
    volume.mkdir(0o755)
    os.chown(volume, USER, USER)
    running = Machine(volume, settings, bucket)
    yield running
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.stop()
    shutil.rmtree(above)


@as_root
@pytest.mark.full
def test_the_restore_on_fly_in_the_order_of_the_docs(machine, payer, chain):
    price = 20_000
    machine.start()
    until(lambda: bool(machine.logged("drill.done")))
    chain.mine()
    before = payer.transfer(price)
    assert machine.pay(before)[0] == 200
    # Names of copies have whole seconds.
    time.sleep(1.1)
    assert ".db.gz: " in machine.console("backup")
    since = payer.transfer(price)
    assert machine.pay(since)[0] == 200
    # Of the two in this hour the newer is kept.
    (copy,) = json.loads(machine.console("backups", "--json"))
    machine.restart(GATEWAY_RESTORE="latest")
    (done,) = machine.logged("restore.done")
    assert (done["copy"], done["payments"]) == (copy["copy"], 1)
    assert machine.pay(before) == (400, "TX_ALREADY_USED")
    assert machine.pay(since) == (400, "INVALID_PAYMENT")
    unused = json.loads(machine.console("transfers", "unused", "--hours", "0", "--json"))
    assert [row["transaction"] for row in unused] == [since]
    # The machine restarts automatically before the operator has unset the secret.
    chain.mine()
    sold = payer.transfer(price)
    assert machine.pay(sold)[0] == 200
    machine.restart()
    assert machine.logged("restore.done") == []
    assert machine.logged("restore.already_done")
    assert machine.pay(sold) == (400, "TX_ALREADY_USED")
    machine.stop()
    assert len(list(machine.volume.glob("gateway.db.before-restore-*[0-9]"))) == 1
    assert _owned_by_others(machine.volume) == []


def _owned_by_others(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.lstat().st_uid != USER]


@pytest.mark.full
@as_root
def test_a_restore_by_root_leaves_a_folder_that_the_gateways_user_serves_from(
    machine, payer, chain
):
    machine.start()
    until(lambda: bool(machine.logged("backup.done")))
    chain.mine()
    paid = payer.transfer(20_000)
    assert machine.pay(paid)[0] == 200
    # A missing copy stops the start with a message, and changes nothing.
    with pytest.raises(AssertionError, match="cannot find the copy"):
        machine.restart(GATEWAY_RESTORE="gateway-20200101T000000Z-ffffffffffffffff.db.gz")
    machine.process = None
    assert "Traceback" not in machine.log.read_text()
    assert "Restored." in machine.console("restore", "latest")
    assert _owned_by_others(machine.volume) == []
    assert "Restored." in machine.console("restore", str(next(_replaced(machine.volume))))
    machine.restart(GATEWAY_RESTORE="")
    assert machine.pay(paid) == (400, "TX_ALREADY_USED")
    assert _owned_by_others(machine.volume) == []


def _replaced(volume: Path):
    return volume.glob("gateway.db.before-restore-*[0-9]")


@pytest.mark.full
@as_root
def test_a_gateway_that_ends_does_not_wait_for_an_upload_that_hangs(machine):
    """The store accepts the connection and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connected = threading.Event()
        threading.Thread(target=_accept, args=(silent, connected), daemon=True).start()
        machine.secrets["GATEWAY_BACKUP_S3_ENDPOINT"] = (
            f"http://127.0.0.1:{silent.getsockname()[1]}"
        )
        machine.start()
        assert connected.wait(240)
        assert machine.ask("/api/health")[0] == 200
        process = machine.process
        machine.stop()
    # The upload alone would wait for minutes; the drain has nothing to wait for.
    assert process.returncode == 0, machine.log.read_text()
    assert machine.logged("backup.failed") == []
    assert list(machine.volume.glob("gateway.db.copying-*"))


def _accept(silent: socket.socket, connected: threading.Event) -> None:
    kept = []
    with contextlib.suppress(OSError):
        while True:
            kept.append(silent.accept())
            connected.set()
