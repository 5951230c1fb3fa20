"""The file, settings and command of a gateway that is moved; without a chain."""

import attrs
import pytest
from click.testing import CliRunner

from gateway import Output, Result
from gateway.cli import main
from gateway.outputs import DiskOutputs
from gateway.settings import variable
from gateway.store import SqliteStore
from gateway_testing.facts import NOW, leased, reserved
from tests.conftest import PNG
from tests.operator_history import Sale, add_sale
from tests.plugins.gateway_bucket.app.conftest import (
    _no_keys_of_others,
    bucket,
    dead_bucket,
    folder,
    local,
    s3,
)
from tests.unit.conftest import settings

__all__ = ["_no_keys_of_others", "bucket", "dead_bucket", "folder", "local", "s3", "settings"]
SECRET = "f" * 64
NAMES = ("base_url", "wallet", "data_dir", "settlement_key")


@pytest.fixture
async def path(settings):
    """The database of a gateway with sales in every possible state."""
    path = settings.data_dir / "gateway.db"
    async with SqliteStore(path) as store:
        await store.meta("network", lambda: "base")
        await store.meta("file_secret", lambda: SECRET)
        await _complete(store, DiskOutputs(settings.data_dir / "outputs", SECRET))
        await leased(store, tx=900, id="task-leased")
        await reserved(store, id="task-reserved")
        await store.write(_fill)
    return path


async def _complete(store, disk):
    lease = await leased(store, tx=899, id="task-done")
    picture = Result(outputs=(Output(data=PNG, media_type="image/png", width=1, height=1),))
    kept = await disk.save(f"task-done-{lease.token[:16]}", picture)
    # Long enough to be stored in separate rows.
    kept = attrs.evolve(kept, text="long " * 20_000)
    assert await store.queue.complete(lease, kept, expires_at=NOW + 9, now=NOW)


def _fill(db):
    for number in range(60):
        status = ("completed", "failed", "queued", "processing")[number % 4]
        add_sale(db, Sale(at=NOW - 1000 + number, status=status, cost_micros=number, gas_wei=5))
    for state in ("reserved", "settling", "released"):
        add_sale(db, Sale(at=NOW, status="held", state=state))


@pytest.fixture
def run(settings, bucket, database_url):
    """Run a command of the gateway whose outputs are in a bucket."""
    env = {variable(name): str(getattr(settings, name)) for name in NAMES} | {
        "GATEWAY_RPC_URLS": ",".join(settings.rpc_urls),
        "GATEWAY_OUTPUTS_URL": f"s3://{bucket.name}/shop",
        "GATEWAY_OUTPUTS_ENDPOINT": bucket.endpoint,
        "GATEWAY_OUTPUTS_ACCESS_KEY_ID": bucket.access_key_id,
        "GATEWAY_OUTPUTS_SECRET_ACCESS_KEY": bucket.secret_access_key,
    }

    def see(*words, **more):
        result = CliRunner().invoke(main, ["migrate-store", *words], env=env | more)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return lambda *words, **more: see("--to", database_url, *words, **more)
