"""GATEWAY_ROLE: a machine's work among several, and the effect of a missing role."""

import contextlib
import time

import attrs
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.errors import SettingsError
from gateway.settings import check_database
from gateway.settings.checks import check_settings
from gateway_nodes.postgres.store import PostgresStore
from tests.conftest import running
from tests.gateway.direct.test_direct_route import claim
from tests.patience import skip_time


@contextlib.asynccontextmanager
async def node(address, name, *roles):
    async with PostgresStore(address, node=name, roles=roles or ("web", "worker", "signer")) as one:
        yield one


async def shown(store):
    return {each.name: (each.roles, each.is_leader) for each in await store.nodes.nodes()}


async def test_each_node_shows_what_it_does_and_a_signer_leads(database_url):
    async with (
        node(database_url, "a", "web") as web,
        node(database_url, "b", "worker") as worker,
        node(database_url, "c", "signer", "web") as signer,
    ):
        for store in (web, worker, signer):
            await store.nodes.renew(lease_s=60, now=time.time())
        assert await shown(web) == {
            "a": (("web",), False),
            "b": (("worker",), False),
            "c": (("web", "signer"), True),
        }
        await signer.nodes.unregister()
        assert not await web.nodes.renew(lease_s=60, now=time.time())
        assert not await worker.nodes.renew(lease_s=60, now=time.time())
        assert (await shown(web))["c"] == ((), False)


async def test_a_node_knows_whether_any_works(database_url):
    async with (
        node(database_url, "a", "web") as web,
        node(database_url, "b", "worker") as worker,
    ):
        await web.nodes.renew(lease_s=60, now=time.time())
        assert not web.nodes.has_workers
        await worker.nodes.renew(lease_s=60, now=time.time())
        await web.nodes.renew(lease_s=60, now=time.time())
        assert web.nodes.has_workers
        await worker.nodes.unregister()
        await web.nodes.renew(lease_s=60, now=time.time())
        assert not web.nodes.has_workers


async def test_a_node_knows_whether_others_sell(database_url):
    async with node(database_url, "a") as one, node(database_url, "b") as other:
        assert one.nodes.has_other_sellers
        await one.nodes.renew(lease_s=60, now=time.time())
        assert not one.nodes.has_other_sellers
        await other.nodes.renew(lease_s=60, now=time.time())
        await one.nodes.renew(lease_s=60, now=time.time())
        assert one.nodes.has_other_sellers
        await other.nodes.unregister()
        await one.nodes.renew(lease_s=60, now=time.time())
        assert not one.nodes.has_other_sellers
        skip_time(10)
        assert one.nodes.has_other_sellers


async def test_a_node_that_lost_its_name_does_not_sell_alone(database_url):
    async with node(database_url, "a") as one:
        await one.nodes.renew(lease_s=60, now=time.time())
        assert not one.nodes.has_other_sellers
        await one._write(lambda db: db.execute("UPDATE nodes SET life = 'another'").rowcount)
        await one.nodes.renew(lease_s=60, now=time.time())
        assert one.nodes.has_other_sellers


async def test_a_node_of_the_release_before_does_everything(database_url):
    async with node(database_url, "a", "web") as web, node(database_url, "b") as old:
        await old.nodes.renew(lease_s=60, now=time.time())
        await old._write(lambda db: db.execute("DELETE FROM roles").rowcount)
        await web.nodes.renew(lease_s=60, now=time.time())
        assert web.nodes.has_workers
        assert (await shown(web))["b"][0] == ("web", "worker", "signer")


async def test_another_role_under_the_same_name_replaces_the_former(database_url):
    async with node(database_url, "a") as former:
        await former.nodes.renew(lease_s=60, now=time.time())
        await former.nodes.unregister()
    async with node(database_url, "a", "web") as later:
        await later.nodes.renew(lease_s=60, now=time.time())
        assert (await shown(later))["a"] == (("web",), False)


@contextlib.asynccontextmanager
async def gateway_of(settings, database_url, role, provider):
    its = attrs.evolve(settings, database_url=database_url, node=role, role=role)
    async with running(its, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        yield gateway


async def test_one_sells_and_another_makes_it(settings, provider, payer, database_url):
    settings.data_dir.mkdir(parents=True)
    async with gateway_of(settings, database_url, "web", provider) as web:
        paid = payer.transfer(20_000)
        refused = await claim(web, paid)
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "20"
        assert "nothing was charged" in (await refused.get_json())["error"]
        ready = await web.client.get("/api/ready")
        assert ready.status_code == 503
        async with gateway_of(settings, database_url, "worker", provider) as worker:
            other = await claim(worker, paid)
            assert other.status_code == 503
            assert "sells nothing" in (await other.get_json())["error"]
            await web.services.store.nodes.renew(lease_s=60, now=time.time())
            sold = await claim(web, paid)
            assert sold.status_code == 200
            task_id = (await sold.get_json())["taskId"]
            assert (await worker.wait(task_id))["status"] == "completed"
            assert (await web.client.get("/api/ready")).status_code == 200
            assert (await worker.client.get("/api/ready")).status_code == 503
            assert web.services.workers.running == 0


async def test_the_command_says_what_no_machine_does(database_url, monkeypatch, settings, tmp_path):
    async with node(database_url, "a", "web") as web:
        await web.nodes.renew(lease_s=60, now=time.time())
        output = await run_nodes(database_url, monkeypatch, tmp_path)
    assert "runs (web)" in output
    assert "No machine works" in output
    assert "GATEWAY_ROLE=signer" in output
    assert "No machine sells" not in output


async def run_nodes(address, monkeypatch, folder):
    import asyncio

    monkeypatch.chdir(folder)
    monkeypatch.setenv("GATEWAY_DATABASE_URL", address)
    monkeypatch.setenv("GATEWAY_WALLET", "0x" + "b2" * 20)
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "1" * 64)
    monkeypatch.setenv("GATEWAY_OUTPUTS_URL", "s3://outputs")
    monkeypatch.setenv("GATEWAY_OUTPUTS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("GATEWAY_OUTPUTS_SECRET_ACCESS_KEY", "hidden")
    ran = await asyncio.to_thread(CliRunner().invoke, main, ["nodes"])
    assert ran.exit_code == 0, ran.output
    return ran.output


def test_a_lone_machine_does_everything(settings):
    with pytest.raises(SettingsError, match="GATEWAY_DATABASE_URL"):
        check_database(attrs.evolve(settings, role="web"))
    for role in ("all", "web,worker,signer", "web, all"):
        check_database(attrs.evolve(settings, role=role))


@pytest.mark.parametrize("role", ["cook", "web,cook", "", "web;worker"])
def test_an_unknown_role_is_refused_with_an_example(settings, role):
    with pytest.raises(SettingsError, match="GATEWAY_ROLE=web,signer"):
        check_settings(attrs.evolve(settings, role=role))
