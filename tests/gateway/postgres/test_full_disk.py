"""A PostgreSQL with a full disk: each node alerts, none sells, and one records it later."""

import contextlib

import attrs
import psycopg

from gateway_operator.alarms import rounds
from gateway_operator.sql import alarms
from gateway_operator.state import Operator
from tests.conftest import buy, running
from tests.plugins.gateway_operator.app.alarm_gateway import check_alarms
from tests.plugins.gateway_operator.app.test_alarm_channels import Telling

# The server's own error for a full disk, for every writing statement.
_FILL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END
$$;
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
    EXECUTE format('CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE OR DELETE ON %I '
                   'FOR EACH STATEMENT EXECUTE FUNCTION full_disk()', name);
  END LOOP;
END $$;
"""


@contextlib.contextmanager
def full_disk(address):
    with psycopg.connect(address, autocommit=True) as raw:
        raw.execute(_FILL)
        try:
            yield
        finally:
            raw.execute("DROP FUNCTION full_disk() CASCADE")


async def test_each_node_tells_of_a_full_disk_and_the_leader_writes_it_down(
    settings, provider, payer, migrated_url, monkeypatch
):
    monkeypatch.setitem(rounds.HOLDS_S, "check", 0.0)
    settings.data_dir.mkdir(parents=True)
    one, other = (attrs.evolve(settings, database_url=migrated_url, node=name) for name in "ab")
    channels = Telling(), Telling()
    async with (
        running(one, provider, more=(channels[0],)) as first,
        running(other, provider, more=(channels[1],)) as second,
    ):
        nodes = (first, second)
        for node in nodes:
            await node.services.lifecycle.warmed.wait()
            node.services.shared_checks.ttl_s = 0.0
            node.services.find(Operator).alarms.is_mine = node.services.store.nodes.leads
        with full_disk(migrated_url):
            for node, channel in zip(nodes, channels, strict=True):
                await check_alarms(node)
                assert "check:disk" in {
                    one.key for one in channel.received if one.event == "raised"
                }
                # A response of the server alone does not prove that its disk has room.
                await node.services.store.ping()
                assert node.services.store.is_full
                refusal = await buy(node, payer.header())
                assert "nothing was charged" in (await refusal.get_json())["error"]
        for node in nodes:
            await check_alarms(node)
            assert not node.services.store.is_full
        open_alarms = await first.services.store.sum(alarms.open_alarms)
        assert [one.key for one in open_alarms].count("check:disk") == 1
        answer = await buy(second, payer.header())
        assert answer.status_code == 200, await answer.get_json()
