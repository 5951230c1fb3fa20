"""Health and readiness."""

import attrs

from gateway.running.readiness import TTL_S
from tests.conftest import running
from tests.gateway.web.descriptions import get_json, slugs


async def test_health_counts_and_never_asks_the_chain(gateway, chain, payer):
    chain.stop()
    body = await get_json(gateway, "/api/health")
    assert body.pop("uptimeSeconds") >= 0
    assert isinstance(body.pop("version"), str)
    assert body == {
        "status": "ok",
        "network": "base",
        "tasks": {"queued": 0, "processing": 0},
        "endpoints": len(await slugs(gateway)),
    }


async def _ready(gateway) -> tuple[int, dict[str, bool]]:
    answer = await gateway.client.get("/api/ready")
    body = await answer.get_json()
    return answer.status_code, {row["name"]: row["ok"] for row in body["checks"]}


async def test_ready_tells_check_by_check(gateway, chain, clock):
    status, checks = await _ready(gateway)
    assert status == 200
    assert all(checks.values())
    assert {"database", "disk", "draining", "rpc"} <= set(checks)
    chain.stop()
    clock.offset_s += TTL_S
    status, checks = await _ready(gateway)
    assert (status, checks["rpc"], checks["database"]) == (200, False, True)
    gateway.services.readiness.is_draining = True
    status, checks = await _ready(gateway)
    assert (status, checks["draining"]) == (503, False)


async def test_ready_has_a_row_for_a_provider_that_is_off_sale(gateway):
    circuit = gateway.services.catalog["picture"].upstream.circuit
    circuit.trip("No credit.")
    answer = await gateway.client.get("/api/ready")
    body = await answer.get_json()
    (row,) = [row for row in body["checks"] if row["name"].startswith("provider")]
    assert row == {
        "name": "provider scripted",
        "ok": False,
        "stops": "picture, paper",
        "problem": "off sale",
    }
    assert (answer.status_code, body["ready"]) == (200, True)
    circuit.try_again()
    assert "provider scripted" not in (await _ready(gateway))[1]


async def test_the_operators_page_quotes_no_value_of_a_plugins_settings(settings, provider):
    values = {**settings.plugin_values, "acme_api_key": "MARKER-KEY"}
    keyed = attrs.evolve(settings, plugin_values=values)
    async with running(keyed, provider) as gateway:
        circuit = gateway.services.catalog["picture"].upstream.circuit
        circuit.trip("The key MARKER-KEY is not known." + "x" * 1000)
        await gateway.client.post("/admin/login", json={"password": "correct horse"})
        page = (await (await gateway.client.get("/admin/ready")).get_data()).decode()
    assert "MARKER" not in page
    assert "The key … is not known." in page
    assert "x" * 500 not in page


async def test_a_gateway_without_disk_is_not_ready(settings, provider):
    async with running(attrs.evolve(settings, min_free_disk_mb=10**9), provider) as gateway:
        status, checks = await _ready(gateway)
    assert (status, checks["disk"]) == (503, False)
