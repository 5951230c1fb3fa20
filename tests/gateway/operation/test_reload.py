"""`gateway reload`: endpoints change while the gateway sells, and no payment or task is lost."""

import asyncio
import re
import threading
import time

import attrs
import pytest

from gateway import (
    Choice,
    Endpoint,
    SettingsError,
    Traits,
    hookimpl,
)
from gateway.domain import QUOTE_LIFE_S
from gateway_operator.actions import endpoints as actions
from gateway_operator.audit_log import Actor
from gateway_operator.state import Operator
from tests.conftest import WALLET, ScriptedProvider, nothing_charged, running

BODY = {"prompt": "a boat"}
PHOTO = Endpoint(
    slug="photo",
    title="Alpha",
    description="One pixel.",
    model="pixel-1",
    provider="scripted",
    capability="text-to-image",
    price_units=30_000,
    output_format=Choice(values=("png",), default="png"),
)
SKETCH = attrs.evolve(PHOTO, slug="sketch", title="Beta")
DEARER = attrs.evolve(PHOTO, price_units=50_000)


class ReloadedPlugin:
    """A plugin whose endpoints a test changes."""

    __name__ = "reloaded-plugin"

    def __init__(self) -> None:
        self.provider = ScriptedProvider()
        # One task runs, and the next one waits.
        self.provider.traits = Traits(idempotent_submit=True, max_concurrency=1)
        self.offers = [(PHOTO, self.provider)]
        self.error = None
        self.go = threading.Event()
        self.go.set()

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        self.go.wait()
        if self.error is not None:
            raise self.error
        for endpoint, provider in self.offers:
            register(endpoint, provider)

    reload_endpoints = register_endpoints


@pytest.fixture
def plugin():
    return ReloadedPlugin()


@pytest.fixture
async def gateway(settings, provider, chain, clock, plugin):
    async with running(settings, provider, more=[plugin], now=clock) as started:
        started.chain = chain
        yield started


async def reload(gateway, plugin, *offers):
    """Reload with other endpoints of the plugin's provider; return the sentences."""
    plugin.offers = [(one, plugin.provider) for one in offers]
    return (await gateway.services.reloads.run()).sentences


async def ask(gateway, slug="photo", header=None):
    headers = {"X-PAYMENT": header} if header else {}
    return await gateway.client.post(f"/api/x402/{slug}", json=BODY, headers=headers)


async def price_of(gateway, slug="photo") -> int:
    answer = await ask(gateway, slug)
    assert answer.status_code == 402, await answer.get_data()
    return int((await answer.get_json())["accepts"][0]["amount"])


async def task_of(gateway, slug="photo", header=None) -> str:
    answer = await ask(gateway, slug, header)
    assert answer.status_code == 200, await answer.get_data()
    return (await answer.get_json())["taskId"]


def held(provider):
    """Let the provider's next generation wait for the event; returns it."""
    begun, go = asyncio.Event(), asyncio.Event()

    async def wait(request, job):
        begun.set()
        await go.wait()

    provider.script = [wait]
    return begun, go


DOORS = ("/.well-known/agent-manifest.json", "/llms.txt", "/openapi.json", "/", "/sitemap.xml")


async def shown(gateway) -> dict[str, set[str]]:
    """Return the slugs that each document shows."""
    found = {}
    for path in DOORS:
        text = (await (await gateway.client.get(path)).get_data()).decode()
        found[path] = slugs_in(text)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream", "Host": "gateway.test"}
    answer = await gateway.client.post("/mcp", json=call, headers=headers)
    found["/mcp"] = slugs_in((await answer.get_data()).decode())
    return found


def slugs_in(text: str) -> set[str]:
    """Return the slugs in a document, as `/photo`, `"photo"` or `- photo:`."""
    return {slug for slug in ("photo", "sketch") if re.search(rf"[/\"` ]{slug}[^a-z ]", text)}


async def test_every_door_follows_a_reload(gateway, plugin):
    doors = (*DOORS, "/mcp")
    assert await shown(gateway) == {one: {"photo"} for one in doors}
    assert await price_of(gateway) == 30_000
    sentences = await reload(gateway, plugin, DEARER, SKETCH)
    assert sentences == ["reloaded-plugin: added sketch; changed photo."]
    assert await shown(gateway) == {one: {"photo", "sketch"} for one in doors}
    assert (await price_of(gateway), await price_of(gateway, "sketch")) == (50_000, 30_000)
    assert await reload(gateway, plugin, SKETCH) == ["reloaded-plugin: removed photo."]
    assert await shown(gateway) == {one: {"sketch"} for one in doors}
    assert await reload(gateway, plugin, SKETCH) == ["Nothing has changed."]


async def test_mcp_takes_files_once_an_endpoint_does(gateway, plugin):
    for other in ("scripted-plugin", "gateway_documents"):
        gateway.services.catalog.withdraw(other)
    file = {"prompt": "a boat", "fileBase64": "a" * 300_000, "fileName": "a.png"}
    params = {"name": "photo", "arguments": file}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Accept": "application/json, text/event-stream", "Host": "gateway.test"}

    async def status() -> int:
        return (await gateway.client.post("/mcp", json=call, headers=headers)).status_code

    assert await status() == 413
    edit = {
        "slug": "edit",
        "capability": "image-editing",
        "required_fields": ("prompt", "fileBase64", "fileName"),
        "file_extensions": (".png",),
    }
    await reload(gateway, plugin, attrs.evolve(PHOTO, **edit))
    params["name"] = "edit"
    assert await status() == 200


async def test_an_added_endpoint_is_bought_and_made(gateway, plugin, payer):
    await reload(gateway, plugin, PHOTO, SKETCH)
    task_id = await task_of(gateway, "sketch", payer.header(30_000))
    assert (await gateway.wait(task_id))["status"] == "completed"


async def test_what_was_quoted_before_a_removal_is_bought(gateway, plugin, payer):
    header, tx_hash = payer.header(30_000), payer.transfer(30_000)
    await reload(gateway, plugin)
    assert (await ask(gateway)).status_code == 404
    # A refused payment is not offered the endpoint again.
    assert (await ask(gateway, header=payer.header(20_000))).status_code == 404
    assert (await gateway.wait(await task_of(gateway, header=header)))["status"] == "completed"
    body = {"slug": "photo", **BODY, "txHash": tx_hash}
    answer = await gateway.client.post("/api/proxy-generate", json=body)
    task_id = (await answer.get_json())["taskId"]
    assert (await gateway.wait(task_id))["status"] == "completed"


async def test_a_removed_endpoint_charges_nothing(gateway, plugin, payer, clock):
    header = payer.header(30_000, valid_before=int(time.time()) + 900)
    await reload(gateway, plugin)
    clock.offset_s += QUOTE_LIFE_S + 1
    async with nothing_charged(gateway, gateway.chain):
        answer = await ask(gateway, header=header)
        error = await answer.get_json()
        assert (answer.status_code, error["code"]) == (404, "NOT_FOUND")
        assert "No such endpoint" in error["error"]
    # It is back, and the same signature buys.
    await reload(gateway, plugin, PHOTO)
    assert (await gateway.wait(await task_of(gateway, header=header)))["status"] == "completed"


# -- in the middle of a purchase


async def test_an_earlier_price_is_good_as_long_as_its_402(gateway, plugin, payer, clock):
    header, late = payer.header(30_000), payer.header(30_000, valid_before=int(time.time()) + 900)
    await reload(gateway, plugin, DEARER)
    # Further reloads do not end it.
    await reload(gateway, plugin, attrs.evolve(DEARER, price_units=60_000))
    task = await gateway.wait(await task_of(gateway, header=header))
    assert task["status"] == "completed"
    clock.offset_s += QUOTE_LIFE_S + 1
    async with nothing_charged(gateway, gateway.chain):
        answer = await ask(gateway, header=late)
        assert answer.status_code == 402
        assert (await answer.get_json())["accepts"][0]["amount"] == "60000"


async def test_a_lower_price_takes_no_more_than_was_signed(gateway, plugin, payer):
    header = payer.header(30_000)
    await reload(gateway, plugin, attrs.evolve(PHOTO, price_units=10_000))
    task = await gateway.wait(await task_of(gateway, header=header))
    assert task["status"] == "completed"


async def test_paid_tasks_of_a_removed_endpoint_are_made(gateway, plugin, payer):
    begun, go = held(plugin.provider)
    running_header, waiting_header = payer.header(30_000), payer.header(30_000)
    first = await task_of(gateway, header=running_header)
    await begun.wait()
    second = await task_of(gateway, header=waiting_header)
    await reload(gateway, plugin, SKETCH)
    # A repeated request gets its task, though its endpoint is gone.
    assert await task_of(gateway, header=waiting_header) == second
    go.set()
    for task_id in (first, second):
        assert (await gateway.wait(task_id))["status"] == "completed"
    assert len(plugin.provider.requests) == 2


async def test_another_provider_does_not_make_what_it_has_not_checked(gateway, plugin, payer):
    catalog = gateway.services.catalog

    class Checking(ScriptedProvider):
        def validate(self, request, endpoint) -> None:
            catalog.replace("reloaded-plugin", [(PHOTO, ScriptedProvider())])

    plugin.provider = Checking()
    await reload(gateway, plugin, PHOTO)
    async with nothing_charged(gateway, gateway.chain):
        answer = await ask(gateway, header=payer.header(30_000))
        assert answer.status_code == 500
        assert "has just changed" in (await answer.get_json())["error"]


async def test_a_paid_task_that_no_longer_fits_is_refunded(gateway, plugin, payer):
    sizes = Choice(values=("S", "HD"), default="HD")
    await reload(gateway, plugin, attrs.evolve(PHOTO, resolution=sizes))
    begun, go = held(plugin.provider)
    headers = [payer.header(30_000), payer.header(30_000)]
    first = await task_of(gateway, header=headers[0])
    await begun.wait()
    second = await task_of(gateway, header=headers[1])
    fewer = Choice(values=("S",), default="S")
    await reload(gateway, plugin, attrs.evolve(PHOTO, resolution=fewer))
    go.set()
    assert (await gateway.wait(first))["status"] == "completed"
    task = await gateway.wait(second)
    assert (task["status"], task["refund"]["state"]) == ("failed", "refund_due")
    assert len(plugin.provider.requests) == 1


async def test_a_running_task_ends_at_the_provider_that_began_it(gateway, plugin, payer):
    begun, go = held(plugin.provider)
    before = plugin.provider
    first = await task_of(gateway, header=payer.header(30_000))
    await begun.wait()
    plugin.provider = ScriptedProvider()
    assert await reload(gateway, plugin, PHOTO) == ["reloaded-plugin: changed photo."]
    second = await task_of(gateway, header=payer.header(30_000))
    assert (await gateway.wait(second))["status"] == "completed"
    go.set()
    assert (await gateway.wait(first))["status"] == "completed"
    assert (len(before.requests), len(plugin.provider.requests)) == (1, 1)


async def test_no_payment_is_lost_while_endpoints_come_and_go(gateway, plugin, payer, chain):
    before = chain.usdc_balance(WALLET)

    async def buy_one() -> str | None:
        answer = await ask(gateway, header=payer.header(50_000))
        body = await answer.get_json()
        if answer.status_code == 200:
            return body["taskId"]
        # Removed, or changed in mid-check.
        assert answer.status_code in (404, 500), body
        return None

    buying = [asyncio.create_task(buy_one()) for _ in range(12)]
    while not all(one.done() for one in buying):
        for offers in ((DEARER,), (DEARER, SKETCH), (), (PHOTO,)):
            await reload(gateway, plugin, *offers)
            await asyncio.sleep(0.01)
    await reload(gateway, plugin, DEARER)
    last = await buy_one()
    assert last is not None
    bought = [last, *(task_id for one in buying if (task_id := one.result()) is not None)]
    for task_id in bought:
        assert (await gateway.wait(task_id))["status"] == "completed"
    assert chain.usdc_balance(WALLET) - before == 50_000 * len(bought)


# -- mistakes


@pytest.mark.parametrize(
    "error", [SettingsError("photo.toml is not right: it is empty."), ValueError("odd")]
)
async def test_a_mistake_keeps_all_endpoints_and_is_one_sentence(gateway, plugin, error):
    plugin.error = error
    done = await gateway.services.reloads.run()
    assert not done.is_whole
    (sentence,) = done.sentences
    assert sentence.startswith("reloaded-plugin keeps its endpoints as they were: ")
    assert str(error) in sentence
    assert await price_of(gateway) == 30_000
    (condition,) = await gateway.services.reloads.find_conditions()
    assert str(error) in condition.text
    plugin.error = None
    await gateway.services.reloads.run()
    assert await gateway.services.reloads.find_conditions() == []


@pytest.mark.parametrize(
    "wrong",
    [
        # Of another plugin; below its cost; with a mistake.
        attrs.evolve(PHOTO, slug="picture"),
        attrs.evolve(PHOTO, slug="other", cost_micros=40_000),
        attrs.evolve(PHOTO, slug="other", title=""),
    ],
)
async def test_one_wrong_endpoint_keeps_all_of_its_plugin(gateway, plugin, wrong):
    before = gateway.services.catalog.upstreams()
    (sentence,) = await reload(gateway, plugin, DEARER, wrong)
    assert "keeps its endpoints as they were" in sentence
    assert await price_of(gateway) == 30_000
    assert (await ask(gateway, "other")).status_code == 404
    assert gateway.services.catalog.upstreams() == before


async def test_a_plugin_that_hangs_stops_no_sale(gateway, plugin):
    gateway.services.reloads.offer_s = 0.05
    plugin.go = threading.Event()
    done = await gateway.services.reloads.run()
    plugin.go.set()
    assert not done.is_whole
    assert "did not return within 0.05 seconds" in done.sentences[0]
    assert await price_of(gateway) == 30_000


# -- state that a reload keeps


async def test_an_operators_changes_and_a_providers_state_stay(gateway, plugin):
    services = gateway.services
    desk, actor = services.find(Operator).desk, Actor(door="page", name="s1", address="192.0.2.1")
    upstream = services.catalog["photo"].upstream
    services.catalog["photo"].circuit.trip("the model is gone", pause_s=600.0)
    await actions.pause(desk, actor, "photo", reason="x")
    await reload(gateway, plugin, DEARER)
    after = services.catalog["photo"]
    assert after.is_paused
    assert after.upstream is upstream
    assert after.open_circuit is not None
    await actions.resume(desk, actor, "photo")
    assert not services.catalog["photo"].is_paused
    assert services.catalog["photo"].endpoint.price_units == 50_000


async def test_a_new_provider_is_checked_before_long(gateway, plugin):
    checked = []

    class Counted(ScriptedProvider):
        async def health(self) -> None:
            checked.append(self)

        async def close(self) -> None:
            checked.append("closed")

    plugin.provider = Counted()
    await reload(gateway, plugin, PHOTO)
    assert checked == [plugin.provider]


async def test_a_removed_endpoint_is_no_longer_the_operators(gateway, plugin):
    await reload(gateway, plugin)
    listed = [one.endpoint.slug for one in gateway.services.catalog.everything()]
    assert "picture" in listed
    assert "photo" not in listed
