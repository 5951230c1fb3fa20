"""A plugin that blocks the loop is named, with the stack, while it blocks."""

import asyncio
import importlib
import sys
import threading
import time
from types import SimpleNamespace

import attrs
import pytest
import structlog

from gateway.catalog import watchdog as module
from gateway.catalog.catalog import Catalog
from gateway.catalog.watchdog import GATEWAY, Watchdog, WatchdogTiming, owners_of, watch_loop
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider

PATIENCE_S = 120
SHORT = WatchdogTiming(tick_s=0.03, silence_s=0.1)
OWNERS = {"acme_blocks": "acme"}
PLUGIN = """
import queue
import re
import time


async def submit(is_enough):
    wait(is_enough)


def wait(is_enough):
    deadline = time.monotonic() + 2
    while not is_enough() and time.monotonic() < deadline:
        time.sleep(0.01)


async def ask_a_library(is_enough):
    deadline = time.monotonic() + 2
    while not is_enough() and time.monotonic() < deadline:
        try:
            queue.Queue().get(timeout=0.5)
        except queue.Empty:
            pass


async def hold_the_interpreter(is_enough):
    for length in range(18, 34):
        re.match(r"(a+)+$", "a" * length + "b")
        if is_enough():
            return
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A plugin's module that really blocks, until a condition holds."""
    package = tmp_path / "acme_blocks"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "client.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("acme_blocks.client")
    for name in ("acme_blocks.client", "acme_blocks"):
        del sys.modules[name]


@pytest.fixture
def lines():
    with structlog.testing.capture_logs() as found:
        yield found


def logged(lines, event, plugin="acme"):
    return [line for line in lines if (line["event"], line["plugin"]) == (event, plugin)]


async def block(call, is_seen):
    """Let a plugin block until the watchdog has noticed it.

    On a busy machine the loop may stop briefly without the plugin. While the watchdog reports that,
    it notices no other block; so the plugin gives up after 2 seconds and blocks again.
    """
    async with asyncio.timeout(PATIENCE_S):
        while not is_seen():
            await asyncio.sleep(0)
            await call(is_seen)


async def until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - it is another thread that sets it
            await asyncio.sleep(0.02)


# -- the cause


async def test_a_plugin_that_blocks_is_named_with_its_stack_while_it_blocks(plugin, lines):
    async with watch_loop(OWNERS, timing=SHORT):
        await block(plugin.submit, lambda: logged(lines, "loop.blocked"))
        (line,) = logged(lines, "loop.blocked")  # the loop has not run since
    assert line["log_level"] == "warning"
    places = [frame.partition("acme_blocks/")[2] for frame in line["frames"]]
    assert places[0] == "client.py:8 submit"
    assert places[1] in ("client.py:13 wait", "client.py:14 wait")
    assert line["seconds"] >= SHORT.silence_s


async def test_the_library_that_a_plugin_blocks_in_is_shown_below_it(plugin, lines):
    async with watch_loop(OWNERS, timing=SHORT):
        await block(plugin.ask_a_library, lambda: logged(lines, "loop.blocked"))
    (line,) = logged(lines, "loop.blocked")
    assert line["frames"][0].endswith(" ask_a_library")
    assert "queue.py" in line["frames"][1]


async def test_a_block_of_nobodys_is_the_gateways(lines):
    def is_seen():
        frames = [
            frame for line in logged(lines, "loop.blocked", GATEWAY) for frame in line["frames"]
        ]
        return any(frame.endswith(".blocks_itself") for frame in frames)

    async def blocks_itself(is_enough):
        deadline = time.monotonic() + 2
        while not is_enough() and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251 - that is the point

    async with watch_loop(OWNERS, timing=attrs.evolve(SHORT, report_pause_s=0.0)):
        await block(blocks_itself, is_seen)
    assert logged(lines, "loop.blocked") == []


async def test_what_holds_the_interpreter_is_named_once_it_lets_go(plugin, lines):
    async with watch_loop(OWNERS, timing=SHORT):
        await block(plugin.hold_the_interpreter, lambda: logged(lines, "loop.blocked"))
    (line,) = logged(lines, "loop.blocked")
    assert any(frame.endswith(" hold_the_interpreter") for frame in line["frames"])


async def test_the_lines_hold_no_values(plugin, lines):
    async def with_a_prompt(prompt):
        await block(plugin.submit, lambda: logged(lines, "loop.blocked"))
        return prompt

    async with watch_loop(OWNERS, timing=SHORT):
        await with_a_prompt("MARKER-PROMPT")
    assert "MARKER" not in str(lines)


def test_a_module_belongs_to_its_plugin_its_provider_or_what_lies_beside_them():
    catalog = Catalog({})
    catalog.register(ENDPOINT, ScriptedProvider(), "acme")
    owners = owners_of({"acme.hooks": "acme", "two.one": "first", "two.other": "second"}, catalog)
    assert owners["tests.conftest"] == "acme"
    assert owners["acme"] == owners["acme.hooks"] == "acme"
    assert "two" not in owners  # shared: nobody is accused of the other's code
    assert owners["two.other"] == "second"


# -- how often


async def test_a_block_is_told_once_and_its_end_with_the_total(plugin, lines):
    def went_on(watchdog):
        blocked = logged(lines, "loop.blocked")
        # The seconds are reported with one digit.
        return blocked and watchdog._silent_s > blocked[0]["seconds"] + 0.1

    async with watch_loop(OWNERS, timing=SHORT) as watchdog:
        await block(plugin.submit, lambda: went_on(watchdog) or logged(lines, "loop.released"))
        await until(lambda: logged(lines, "loop.released"))
    (blocked,) = logged(lines, "loop.blocked")
    (released,) = logged(lines, "loop.released")
    assert released["seconds"] > blocked["seconds"]


async def test_who_blocks_again_and_again_is_told_rarely_and_counted(plugin, lines):
    async with watch_loop(OWNERS, timing=SHORT) as watchdog:
        await block(plugin.submit, lambda: logged(lines, "loop.blocked"))
        await until(lambda: watchdog._reported is None)
        await block(plugin.submit, lambda: watchdog._unreported["acme"])
        await until(lambda: watchdog._reported is None)
        watchdog.timing = attrs.evolve(SHORT, report_pause_s=0.0)
        await block(plugin.submit, lambda: len(logged(lines, "loop.blocked")) == 2)
        await until(lambda: watchdog._reported is None)
    assert [line["unreported"] for line in logged(lines, "loop.blocked")] == [0, 1]
    assert len(logged(lines, "loop.released")) == 2


# -- the consequences


def blocks_of(watchdog, lines, plugin, times):
    """Let the watchdog notice `times` blocks, in its thread."""
    for _ in range(times):
        watchdog._silent_s = 1.5
        watchdog._report_block(module._Sample(plugin=plugin, stack=["x.py:1 f"]))
        watchdog._end_block()


@pytest.mark.parametrize(("times", "is_off"), [(2, False), (3, True)])
async def test_a_plugin_that_blocks_three_times_is_taken_off_sale(clock, lines, times, is_off):
    catalog = Catalog({}, now=clock)
    catalog.register(ENDPOINT, ScriptedProvider(), "acme")
    other = attrs.evolve(ENDPOINT, slug="other")
    catalog.register(other, ScriptedProvider(), "somebody")
    async with watch_loop({}, catalog) as watchdog:
        blocks_of(watchdog, lines, "acme", times)
        await asyncio.sleep(0)
    assert [endpoint.slug for endpoint in catalog] == (
        ["other"] if is_off else [ENDPOINT.slug, "other"]
    )
    if is_off:
        circuit = catalog[ENDPOINT.slug].upstream.circuit
        assert circuit.problem.startswith("It has blocked the gateway three times")
        clock.offset_s += module.PAUSE_S - 30
        assert not circuit.is_due
        clock.offset_s += 31
        assert circuit.is_due  # its probe brings it back
        circuit.try_again()
        assert [endpoint.slug for endpoint in catalog] == [ENDPOINT.slug, "other"]


@pytest.mark.parametrize("who", [GATEWAY, module.UNKNOWN])
async def test_nobody_is_taken_off_sale_for_what_the_gateway_does(clock, lines, who):
    catalog = Catalog({}, now=clock)
    catalog.register(ENDPOINT, ScriptedProvider(), who)
    async with watch_loop({}, catalog) as watchdog:
        blocks_of(watchdog, lines, who, 9)
        await asyncio.sleep(0)
    assert len(catalog) == 1


async def test_blocks_that_are_far_between_are_forgiven(clock, lines, monkeypatch):
    logged_of = []
    watchdog = Watchdog({}, logged_of.append)
    watchdog._loop = asyncio.get_running_loop()
    for minutes in (0, 6, 12, 18):
        watchdog._count_block("acme", minutes * 60.0)
    await asyncio.sleep(0)
    assert logged_of == []
    watchdog._count_block("acme", 19 * 60.0)
    await asyncio.sleep(0)
    assert logged_of == ["acme"]


async def test_a_plugin_that_blocks_in_earnest_sells_nothing_any_more(plugin, lines, clock):
    catalog = Catalog({}, now=clock)
    catalog.register(ENDPOINT, ScriptedProvider(), "acme")
    async with watch_loop(OWNERS, catalog, timing=SHORT) as watchdog:
        for times in (1, 2):
            await block(plugin.submit, lambda: len(watchdog._blocks.get("acme", ())) == times)  # noqa: B023
            await until(lambda: watchdog._reported is None)
            assert len(catalog) == 1
        await block(plugin.submit, lambda: not watchdog._blocks["acme"])  # the third empties it
        await until(lambda: len(catalog) == 0)


# -- not a block


@pytest.mark.parametrize(
    ("cpu_s", "blocks"), [(0.01, 0), (5.0, 1)], ids=["asleep", "the interpreter was held"]
)
def test_a_machine_that_slept_was_not_blocked(monkeypatch, lines, cpu_s, blocks):
    times = {"monotonic": 100.0, "process_time": 1.0}
    clock = SimpleNamespace(**{name: lambda name=name: times[name] for name in times})
    monkeypatch.setattr(module, "time", clock)
    watchdog = Watchdog({})
    watchdog._loop_thread = threading.get_ident()
    watchdog._measure_tick()
    times["monotonic"] += 8 * 3600
    times["process_time"] += cpu_s
    watchdog._check_tick(watchdog._measure_tick())
    assert len(logged(lines, "loop.blocked", GATEWAY)) == blocks


async def test_a_loop_that_answers_is_left_alone(lines):
    """The laps are counted here like production's, however slow the machine was."""
    watchdog = Watchdog({})
    watchdog._loop, watchdog._loop_thread = asyncio.get_running_loop(), threading.get_ident()
    watchdog._measure_tick()
    watchdog._ask_loop()
    for _ in range(20):
        await asyncio.sleep(0)
        watchdog._measure_tick()
        watchdog._check_tick(watchdog.timing.tick_s)
    assert lines == []


# -- its end


async def test_it_ends_with_the_app():
    async with watch_loop({}):
        assert "watchdog" in [thread.name for thread in threading.enumerate()]
    assert "watchdog" not in [thread.name for thread in threading.enumerate()]


async def test_the_longest_block_of_late_is_known_by_plugin(plugin, lines):
    async with watch_loop(OWNERS, timing=SHORT) as watchdog:
        assert watchdog.longest_blocks() == {}
        await block(plugin.submit, lambda: logged(lines, "loop.blocked"))
        await until(watchdog.longest_blocks)
        ((_, seconds),) = watchdog.longest_blocks().items()
        assert seconds >= SHORT.silence_s
