"""A bad plugin loses its own feature and nothing else."""

import asyncio

import attrs
import pytest
import structlog

from gateway import Check, Condition, Mount, hookimpl
from gateway.contracts import Challenge, MethodProof, Taken
from gateway.running.facts_of_parts import find_conditions
from tests.conftest import buy, running
from tests.gateway.plugins.bad_parts import (
    SOON,
    Bad,
    assert_sells,
    cling,
    hang,
    raising,
    returning,
)
from tests.plugins.gateway_operator.app.operator import log_in, text_of

ENDINGS = {
    "raises": raising(RuntimeError("bad")),
    "exits": raising(SystemExit(1)),
    "interrupts": raising(KeyboardInterrupt()),
    "cancels itself": raising(asyncio.CancelledError()),
    "hangs": hang,
    "clings": cling,
    "is plain": lambda: None,
}
STEPS = ("begin", "warm", "drain", "close", "run", "work")
# Each step meets an error and a call without an end, and each ending meets two steps.
BAD_STEPS = [
    *((step, "raises") for step in STEPS),
    *((step, "clings") for step in STEPS),
    ("begin", "exits"),
    ("work", "exits"),
    ("warm", "interrupts"),
    ("close", "interrupts"),
    ("run", "cancels itself"),
    ("drain", "cancels itself"),
    ("begin", "hangs"),
    ("work", "hangs"),
    ("warm", "is plain"),
    ("run", "is plain"),
]
GOOD_CHECK = Check(name="bad", ok=True, stops="nothing", summary="Good.")
GOOD_CONDITION = Condition(name="bad_low", level="warn", title="t", text="t", action="a")


@pytest.mark.parametrize(("step", "ending"), BAD_STEPS)
async def test_a_bad_step_stops_nothing_else(settings, provider, payer, step, ending):
    bad = Bad({step: ENDINGS[ending], "every_s": 0.05, "warm_s": 0.2, "drain_s": 0.2})
    with structlog.testing.capture_logs() as lines:
        async with running(settings, provider, more=[bad], timing=SOON) as gateway:
            await gateway.services.lifecycle.warmed.wait()
            await assert_sells(gateway, payer)
    endless = ending in ("hangs", "clings") and step in ("run", "work")
    named = [line for line in lines if line.get("part") == "bad" and line.get("plugin") == "Bad"]
    assert bool(named) is not endless
    assert {line["step"] for line in named} <= {step}


@pytest.mark.parametrize("ending", ["raises", "exits", "hangs"])
async def test_a_third_partys_start_that_fails_costs_its_part_alone(
    settings, provider, payer, install, ending
):
    start = {
        "raises": "raise RuntimeError('bad')",
        "exits": "raise SystemExit(1)",
        "hangs": "await asyncio.Event().wait()",
    }[ending]
    install(f"""
import asyncio
from gateway import Mount, Part, hookimpl

async def start():
    {start}

@hookimpl
def register_parts(register, gateway):
    mount = Mount(paths=["/bad"], blueprint="tests.gateway.plugins.part_routes:make_blueprint")
    register(Part(name="bad", start=start, mounts=[mount]))
""")
    async with running(settings, provider, timing=SOON) as gateway:
        await assert_sells(gateway, payer)
        assert (await gateway.client.get("/bad")).status_code == 404
        (found,) = await find_conditions(gateway.services)
        assert "acme_plugin (bad)" in found.title
        assert "start" in found.text


WRONG_CHECKS = {
    "None": None,
    "a dict": [{"name": "bad"}],
    "a number": 5,
    "a name": [attrs.evolve(GOOD_CHECK, name=7)],
    "stops": [attrs.evolve(GOOD_CHECK, stops=None)],
    "ok": [attrs.evolve(GOOD_CHECK, ok="yes")],
    "a summary": [attrs.evolve(GOOD_CHECK, ok=False, summary=b"bytes")],
    "a problem": [attrs.evolve(GOOD_CHECK, ok=False, problem=ValueError("x"))],
    "no end": (GOOD_CHECK for _ in iter(int, 1)),
}


@pytest.mark.parametrize("kind", WRONG_CHECKS)
async def test_a_check_of_a_wrong_type_is_a_failed_check(settings, provider, payer, kind):
    bad = Bad({"checks": returning(WRONG_CHECKS[kind])})
    async with running(settings, provider, more=[bad], timing=SOON) as gateway:
        await assert_sells(gateway, payer)
        ready = await (await gateway.client.get("/api/ready")).get_json()
        (row,) = (one for one in ready["checks"] if one["name"] == "bad")
        assert row["problem"] == "This check failed."
        await log_in(gateway)
        assert "Check failed: bad" in await text_of(await gateway.client.get("/admin"))


WRONG_CONDITIONS = {
    "None": None,
    "a text": ["low"],
    "a level": [attrs.evolve(GOOD_CONDITION, level="worst")],
    "a level's type": [attrs.evolve(GOOD_CONDITION, level=["bad"])],
    "a title": [attrs.evolve(GOOD_CONDITION, title=None)],
    "an address": [attrs.evolve(GOOD_CONDITION, href="javascript:alert(1)")],
    "raises_alarm": [attrs.evolve(GOOD_CONDITION, raises_alarm="no")],
}


@pytest.mark.parametrize("kind", WRONG_CONDITIONS)
async def test_a_condition_of_a_wrong_type_leaves_the_others(settings, provider, kind):
    bad = Bad({"conditions": returning(WRONG_CONDITIONS[kind])})
    good = Good()
    async with running(settings, provider, more=[bad, good]) as gateway:
        names = [one.name for one in await find_conditions(gateway.services)]
        assert names == ["good", "plugin_failed"]
        await log_in(gateway)
        page = await text_of(await gateway.client.get("/admin"))
        assert "The good one" in page
        assert "The plugin Bad (bad) fails" in page


async def test_surplus_conditions_are_cut_and_the_others_stay(settings, provider):
    many = [attrs.evolve(GOOD_CONDITION, subject=str(number)) for number in range(60)]
    bad = Bad({"conditions": returning(many)})
    async with running(settings, provider, more=[bad, Good()]) as gateway:
        names = [one.name for one in await find_conditions(gateway.services)]
    assert names == ["bad_low"] * 50 + ["good", "plugin_failed"]


@attrs.define
class Good:
    """A part with a condition, which must be seen whatever the others do."""

    @hookimpl
    def register_parts(self, register, gateway):
        from gateway import Part

        found = attrs.evolve(GOOD_CONDITION, name="good", title="The good one")
        register(Part(name="good", conditions=returning([found])))


@pytest.mark.parametrize("ending", [one for one in ENDINGS if one != "is plain"])
@pytest.mark.parametrize("fact", ["checks", "conditions"])
async def test_facts_that_never_come_hide_no_other(settings, provider, payer, fact, ending):
    bad = Bad({fact: ENDINGS[ending]})
    async with running(settings, provider, more=[bad, Good()], timing=SOON) as gateway:
        await assert_sells(gateway, payer)
        names = [one.name for one in await find_conditions(gateway.services)]
        assert names[0] == "good"
        await log_in(gateway)
        assert "The good one" in await text_of(await gateway.client.get("/admin"))


async def test_facts_that_hung_are_not_waited_for_again_at_once(settings, provider):
    asked = []

    async def checks():
        asked.append(1)
        await hang()

    bad = Bad({"checks": checks, "conditions": cling})
    async with running(settings, provider, more=[bad], timing=SOON) as gateway:
        gateway.services.shared_checks.ttl_s = 0.0
        for _ in range(5):
            assert (await gateway.client.get("/api/ready")).status_code == 200
        assert len(asked) == 1


async def test_texts_that_cannot_be_sent_or_stored_are_cleaned(settings, provider):
    odd = attrs.evolve(GOOD_CONDITION, title="a\0b\ud800", text="x" * 10_000)
    check = attrs.evolve(GOOD_CHECK, ok=False, summary="a\ud800")
    bad = Bad({"conditions": returning([odd]), "checks": returning([check])})
    async with running(settings, provider, more=[bad]) as gateway:
        (found,) = await find_conditions(gateway.services)
        assert found.title == "ab?"
        assert len(found.text) == 2_000
        ready = await (await gateway.client.get("/api/ready")).get_json()
        assert "a?" in [one["problem"] for one in ready["checks"]]


URL = "/api/x402/picture"
BODY = {"prompt": "a boat"}

# -- routes

ROUTES = "tests.gateway.plugins.part_routes"


@pytest.mark.parametrize(
    "path",
    [
        *("exits", "exits-in-thread", "interrupts", "cancels", "nothing", "object", "header"),
        *("header?before=1", "nowhere?before=1"),
    ],
)
async def test_a_route_that_raises_anything_is_one_500(settings, provider, payer, path):
    mounts = [Mount(paths=["/bad/*"], blueprint=f"{ROUTES}:make_bad_blueprint")]
    async with running(settings, provider, more=[Bad({"mounts": mounts})]) as gateway:
        answer = await gateway.client.get(f"/bad/{path}")
        assert answer.status_code == (404 if path.startswith("nowhere") else 500)
        await assert_sells(gateway, payer)


@pytest.mark.parametrize("function", ["exit_on_import", "missing"])
async def test_a_blueprint_that_cannot_be_made_is_500_again_and_again(
    settings, provider, payer, function
):
    mounts = [Mount(paths=["/bad"], blueprint=f"{ROUTES}:{function}")]
    async with running(settings, provider, more=[Bad({"mounts": mounts})]) as gateway:
        for _ in range(2):
            assert (await gateway.client.get("/bad")).status_code == 500
        await assert_sells(gateway, payer)


# -- ways to pay


class Way:
    """A payment method, whose challenge a test gives."""

    name = "bad"
    header_names = ("X-Bad",)

    def __init__(self, **changes):
        for name, value in changes.items():
            setattr(self, name, value)

    def challenge(self, quote, reason, version):
        return Challenge(body={}, headers={"X-Bad-Price": "1"})

    def read(self, header):
        raise SystemExit(3)

    async def check(self, proof, quote, now):
        raise SystemExit(3)

    async def settle(self, payment):
        raise SystemExit(3)

    def receipt_headers(self, proof, reference):
        return {}


@attrs.define
class Ways:
    way: object

    @hookimpl
    def register_payment_method(self, register, context):
        register(self.way)


def challenge_of(**changes):
    made = attrs.evolve(Challenge(body={}, headers={}), **changes)
    return lambda *_: made


def leaving(error):
    def fail(*_):
        raise error

    return fail


BAD_CHALLENGES = {
    "raises": leaving(ZeroDivisionError()),
    "exits": leaving(SystemExit(2)),
    "cancels": leaving(asyncio.CancelledError()),
    "None": lambda *_: None,
    "a coroutine": hang,
    "a dict": lambda *_: {"body": {}, "headers": {}},
    "no headers": challenge_of(headers=None),
    "a list of headers": challenge_of(headers=[("X-A", "b")]),
    "a line break": challenge_of(headers={"X-A": "b\r\nX-C: d"}),
    "a line break in a name": challenge_of(headers={"X-A\r\nX-C": "d"}),
    "no ASCII": challenge_of(headers={"X-A": "é"}),
    "a number": challenge_of(headers={"X-A": 5}),
    "bytes": challenge_of(headers={b"X-A": b"5"}),
    "the length": challenge_of(headers={"content-length": "0"}),
    "the framing": challenge_of(headers={"Transfer-Encoding": "chunked"}),
    "a cookie": challenge_of(headers={"Set-Cookie": "a=b"}),
    "the type": challenge_of(headers={"Content-Type": "text/html"}),
    "x402's header": challenge_of(headers={"payment-required": "e30="}),
    "too long": challenge_of(headers={"X-A": "b" * 9_000}),
    "a body of a wrong type": challenge_of(body=[]),
}


@pytest.mark.parametrize("kind", BAD_CHALLENGES)
async def test_a_bad_challenge_is_left_out_of_the_price(settings, provider, payer, kind):
    async with running(settings, provider) as gateway:
        good = await buy(gateway, None)
        headers, body = dict(good.headers), await good.get_data()
    bad = Ways(Way(challenge=BAD_CHALLENGES[kind]))
    with structlog.testing.capture_logs() as lines:
        async with running(settings, provider, more=[bad]) as gateway:
            answer = await buy(gateway, None)
            assert answer.status_code == 402
            assert await answer.get_data() == body
            assert set(dict(answer.headers)) == set(headers)
            name = next(name for name in headers if name.upper() == "PAYMENT-REQUIRED")
            assert answer.headers[name] == headers[name]
            await assert_sells(gateway, payer)
            titles = [one.title for one in await find_conditions(gateway.services)]
            assert titles == ["The plugin tests (bad) fails"]
    named = [line for line in lines if line.get("step") == "challenge"]
    # Not one line for each request.
    assert [line["part"] for line in named] == ["bad"]


async def test_a_way_whose_methods_exit_answers_500_and_ends_nothing(settings, provider, payer):
    async with running(settings, provider, more=[Ways(Way())]) as gateway:
        for _ in range(2):
            answer = await gateway.client.post(URL, json=BODY, headers={"X-Bad": "a"})
            assert answer.status_code == 500
        await assert_sells(gateway, payer)


@pytest.mark.parametrize("ending", [SystemExit(1), asyncio.CancelledError(), KeyboardInterrupt()])
async def test_a_way_that_exits_while_it_settles_is_asked_again(settings, provider, payer, ending):
    asked = []

    class Settles(Way):
        def read(self, header):
            return MethodProof(key="a", data=b"a", value_units=20_000, payer="a")

        async def check(self, proof, quote, now):
            pass

        async def settle(self, payment):
            asked.append(payment)
            if len(asked) == 1:
                raise ending
            return Taken("receipt")

    async with running(settings, provider, more=[Ways(Settles())]) as gateway:
        sold = await gateway.client.post(URL, json=BODY, headers={"X-Bad": "a"})
        task = (await sold.get_json())["taskId"]
        assert (await gateway.wait(task))["status"] == "completed"
        assert len(asked) == 2
        await assert_sells(gateway, payer)


@pytest.mark.parametrize(
    "changes",
    [
        {"guide": 5},
        {"guide": "\ud800"},
        {"payment_info": leaving(SystemExit(1))},
        {"payment_info": lambda _: None},
        {"payment_info": lambda _: {"offers": 5}},
        {"payment_info": lambda _: {"offers": [object()]}},
        {"payment_info": lambda _: {"offers": ["a"]}},
    ],
)
async def test_a_bad_entry_of_a_way_is_left_out_of_the_documents(settings, provider, changes):
    async with running(settings, provider, more=[Ways(Way(**changes))]) as gateway:
        for path in ("/llms.txt", "/openapi.json", "/.well-known/x402.json"):
            assert (await gateway.client.get(path)).status_code == 200, path
