"""A third party's part: its steps, routes, checks, conditions and entries in documents."""

import asyncio
import time

import attrs
import pytest
import structlog

from gateway import Check, Condition, Discovery, Mount, Part, hookimpl
from gateway.plugins.installed import OPTIONAL_PARTS
from tests.conftest import buy, running
from tests.gateway.plugins.part_routes import Counter
from tests.plugins.gateway_operator.app.operator import log_in, text_of

MANIFEST = "/.well-known/agent-manifest.json"
REGISTRATION = "/.well-known/agent-registration.json"


@attrs.define
class Acme:
    """A plugin with one part; `fails` names a step that raises."""

    fails: str = ""
    path: str = "/acme"
    limit: str = ""
    steps: list = attrs.field(factory=list)
    worked: asyncio.Event = attrs.field(factory=asyncio.Event)

    @hookimpl
    def register_parts(self, register, gateway):
        gateway.keep(Counter())
        register(
            Part(
                name="acme",
                start=self._step("start"),
                warm=self._step("warm"),
                run=self._step("run"),
                work=self._step("work"),
                resume=self._step("resume"),
                every_s=0.01,
                drain=self._step("drain"),
                close=self._step("close"),
                mounts=[
                    Mount(
                        paths=[self.path],
                        limit=self.limit,
                        blueprint="tests.gateway.plugins.part_routes:make_blueprint",
                        body_bytes=100,
                        is_public=True,
                    )
                ],
                discovery=Discovery(
                    manifest={"acme": "/acme"},
                    guide={"/acme": "how often this was asked"},
                    closed_paths=["/acme"],
                ),
                checks=self.check,
                conditions=self.find,
            )
        )

    def _step(self, name):
        async def step():
            if name not in self.steps:
                self.steps.append(name)
            if name == "work":
                self.worked.set()
            if name == self.fails:
                raise RuntimeError(name)

        return step

    async def check(self):
        if self.fails == "checks":
            raise RuntimeError("checks")
        return [Check(name="acme", ok=False, stops="nothing", summary="Acme rests.", problem="p")]

    async def find(self):
        if self.fails == "conditions":
            raise RuntimeError("conditions")
        return [
            Condition(
                name="acme_low", level="warn", title="Acme is low", text="3 left", action="Buy."
            )
        ]


async def test_the_steps_of_a_part_run_in_their_order(settings, provider):
    acme = Acme()
    async with running(settings, provider, more=[acme]) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        await acme.worked.wait()
    first, *_ = acme.steps
    assert first == "start"
    assert acme.steps[-2:] == ["drain", "close"]
    assert set(acme.steps) == {"start", "warm", "run", "work", "drain", "close"}


@pytest.mark.parametrize("fails", ["", "resume"])
async def test_after_a_standstill_parts_resume_before_the_next_sale(
    settings, provider, payer, fails
):
    acme = Acme(fails)
    async with running(settings, provider, more=[acme]) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        standstills = gateway.services.standstills
        assert "resume" not in acme.steps
        standstills.monotonic = lambda: time.monotonic() + 3600
        with structlog.testing.capture_logs() as lines:
            sold = await buy(gateway, payer.header())
        assert (sold.status_code, standstills.count) == (200, 1)
    assert "resume" in acme.steps
    assert [line["failed"] for line in lines if line["event"] == "process.not_recovered"] == (
        [["acme"]] if fails else []
    )


@pytest.mark.parametrize("fails", ["warm", "run", "work", "drain", "close", "checks", "conditions"])
async def test_a_part_that_fails_disturbs_no_other(settings, provider, payer, fails):
    acme = Acme(fails)
    with structlog.testing.capture_logs() as lines:
        async with running(settings, provider, more=[acme]) as gateway:
            await gateway.services.lifecycle.warmed.wait()
            await acme.worked.wait()
            sold = await (await buy(gateway, payer.header())).get_json()
            assert (await gateway.wait(sold["taskId"]))["status"] == "completed"
            assert (await gateway.client.get("/api/ready")).status_code == 200
            await log_in(gateway)
            assert (await gateway.client.get("/admin")).status_code == 200
    event = {"run": "background.failed", "work": "sweep.failed"}.get(fails, "part.failed")
    assert event in [line["event"] for line in lines]


async def test_a_part_that_cannot_start_stops_the_start_and_closes_what_began(settings, provider):
    acme = Acme("start")
    with pytest.raises(Exception, match="start"):
        async with running(settings, provider, more=[acme]):
            pass
    assert acme.steps == ["start", "close"]


async def test_its_routes_have_the_gateways_limits_and_headers(settings, provider):
    async with running(settings, provider, more=[Acme()]) as gateway:
        answer = await gateway.client.get("/acme", headers={"Origin": "https://page.example"})
        assert (await answer.get_json()) == {"asked": 1, "bytes": 0}
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["X-Request-Id"]
        assert (await gateway.client.post("/acme", data=b"x" * 100)).status_code == 200
        assert (await gateway.client.post("/acme", data=b"x" * 101)).status_code == 413
        assert (await gateway.client.get("/acme/more")).status_code == 404
        assert (await gateway.client.delete("/acme")).status_code == 405


async def test_its_entries_are_in_the_documents(settings, provider):
    async with running(settings, provider, more=[Acme()]) as gateway:
        manifest = await (await gateway.client.get("/.well-known/agent-manifest.json")).get_json()
        assert manifest["endpoints"]["acme"] == "http://gateway.test/acme"
        guide = await (await gateway.client.get("/llms.txt")).get_data(as_text=True)
        assert "- http://gateway.test/acme: how often this was asked" in guide
        robots = await (await gateway.client.get("/robots.txt")).get_data(as_text=True)
        assert "Disallow: /acme\n" in robots


async def test_its_check_and_its_condition_reach_the_operator(settings, provider):
    async with running(settings, provider, more=[Acme()]) as gateway:
        ready = await (await gateway.client.get("/api/ready")).get_json()
        row = {"name": "acme", "ok": False, "stops": "nothing", "problem": "Acme rests."}
        assert row in ready["checks"]
        await log_in(gateway)
        assert "Acme is low" in await text_of(await gateway.client.get("/admin"))


async def test_a_gateway_sells_without_its_optional_plugins(settings, provider, payer, chain):
    bare = attrs.evolve(settings, plugins_disabled=OPTIONAL_PARTS)
    async with running(bare, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        price = await buy(gateway, None)
        assert price.status_code == 402
        sold = await (await buy(gateway, payer.header())).get_json()
        assert (await gateway.wait(sold["taskId"]))["status"] == "completed"
        body = {"slug": "picture", "txHash": payer.transfer(20_000), "prompt": "a boat"}
        chain.mine(1)
        direct = await (await gateway.client.post("/api/proxy-generate", json=body)).get_json()
        assert (await gateway.wait(direct["taskId"]))["status"] == "completed"
        for path in ("/llms.txt", MANIFEST, REGISTRATION, "/sitemap.xml", "/api/health"):
            document = await gateway.client.get(path)
            assert document.status_code == 200, path
            assert "openapi" not in (await document.get_data(as_text=True)).lower()
            assert "openapi" not in document.headers.get("Link", "")
        assert (await gateway.client.get("/api/ready")).status_code == 200
        for path in ("/", "/admin", "/mcp", "/play/picture", "/openapi.json"):
            assert (await gateway.client.get(path)).status_code == 404, path
        asked = {"prompt": "a boat", "callbackUrl": "https://buyer.example/"}
        refused = await gateway.client.post("/api/x402/picture", json=asked)
        assert (await refused.get_json())["error"].startswith("This gateway sends no events")


async def test_a_client_sends_no_more_than_the_limit_of_a_mount(settings, provider):
    async with running(settings, provider, more=[Acme(limit="2/60s")]) as gateway:
        statuses = [(await gateway.client.get("/acme")).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]


@pytest.mark.parametrize("path", ["/api/x402/*", "/api", "/files/*", "/llms.txt", "acme", "/*"])
async def test_a_part_cannot_take_a_path_of_the_gateway(settings, provider, path):
    with pytest.raises(Exception, match="the part acme: the path"):
        async with running(settings, provider, more=[Acme(path=path)]):
            pass


async def test_a_path_has_one_owner(settings, provider):
    with pytest.raises(Exception, match="Path /mcp is registered by gateway_mcp"):
        async with running(settings, provider, more=[Acme(path="/mcp")]):
            pass


async def test_a_gateway_told_to_stop_while_it_starts_begins_nothing_more(settings, provider):
    @attrs.define
    class Stops:
        steps: list = attrs.field(factory=list)

        @hookimpl
        def register_parts(self, register, gateway):
            async def stop():
                self.steps.append("start")
                gateway.lifecycle.stop_selling()

            async def note(name):
                self.steps.append(name)

            register(Part(name="stops", start=stop, drain=lambda: note("drain")))
            register(Part(name="later", start=lambda: note("later"), begin=lambda: note("begin")))

    stops = Stops()
    async with running(settings, provider, more=[stops]) as gateway:
        assert not gateway.services.workers.running
    assert stops.steps == ["start", "drain"]
