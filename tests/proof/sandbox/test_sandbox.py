"""The results and the restrictions of a sandbox."""

import asyncio
import os
import socket
import sys

import pytest
import sandbox_functions

from gateway.sandbox import (
    Sandbox,
    SandboxEnded,
    SandboxLimits,
    SandboxLost,
    SandboxRefusal,
    process,
)
from gateway.sandbox.child import work
from gateway.sandbox.sandbox import Meter, metered
from tests.patience import until
from tests.proof.sandbox.processes import children_of

linux = pytest.mark.skipif(sys.platform != "linux", reason="a limit that only Linux keeps")


@pytest.fixture
def sandbox():
    """Makes sandboxes for functions of `sandbox_functions`, and closes them."""
    made = []

    def make(name, *, warm=(), **limits):
        function = f"{sandbox_functions.__name__}:{name}"
        made.append(Sandbox(function=function, warm=warm, limits=SandboxLimits(**limits)))
        return made[-1]

    yield make
    for one in made:
        one.close()


async def test_bytes_and_text_go_in_and_bytes_come_out(sandbox):
    join = sandbox("join")
    assert await join.call(b"\0a", "tëxt", b"") == rb"b'\x00a'|" + "'tëxt'".encode() + b"|b''"
    assert await join.call() == b""


async def test_parts_come_back_as_they_are(sandbox):
    assert await sandbox("parts").call_parts("3") == (b"", b"x", b"xx")
    assert await sandbox("parts").call_parts("0") == ()
    assert await sandbox("parts").call("3") == b"xxx"


async def test_a_paid_call_waits_for_no_unpaid_one(sandbox):
    box = sandbox("sleep_unless", children=1)
    with metered(Meter()):
        unpaid = [asyncio.create_task(box.call("")) for _ in range(3)]
    await asyncio.sleep(0)
    assert await box.call("paid") == b"paid"
    assert not any(task.done() for task in unpaid)
    for task in unpaid:
        task.cancel()


@linux
async def test_processor_time_is_charged_however_a_call_ends(sandbox):
    with metered(answered := Meter()):
        assert await sandbox("work_a_while").call("0.2") == b"done"
    assert answered.cpu_s >= 0.2
    with metered(ended := Meter()), pytest.raises(SandboxEnded):
        await sandbox("spin", cpu_s=1).call()
    assert ended.cpu_s >= 0.5
    spinning = sandbox("spin")
    await spinning.start()
    with metered(cancelled := Meter()), pytest.raises(TimeoutError):
        await asyncio.wait_for(spinning.call(), 0.2)
    assert cancelled.cpu_s > 0.0


async def test_fifty_megabytes_go_there_and_back(sandbox):
    data = os.urandom(50_000_000)
    assert await sandbox("echo").call(data) == data


async def test_a_refusal_arrives_with_its_sentence(sandbox):
    with pytest.raises(SandboxRefusal, match=r"^Ça ne va pas\.$"):
        await sandbox("refuse").call("Ça ne va pas.")


async def test_an_exception_tells_its_kind_and_place_and_never_the_input(sandbox):
    with pytest.raises(SandboxEnded) as ended:
        await sandbox("fail").call("a secret")
    assert ended.value.end == "crashed"
    assert "KeyError in " in str(ended.value)
    assert "sandbox_functions.py, line " in str(ended.value)
    assert "secret" not in str(ended.value)


async def test_a_function_that_returns_nonsense_is_a_crash(sandbox):
    with pytest.raises(SandboxEnded) as ended:
        await sandbox("answer_nothing").call()
    assert ended.value.end == "crashed"


async def test_who_sleeps_or_works_too_long_is_out_of_time(sandbox):
    for slow in (sandbox("sleep", wall_s=0.2), sandbox("spin", cpu_s=1)):
        with pytest.raises(SandboxEnded) as ended:
            await slow.call()
        assert ended.value.end == "out of time"


@linux
async def test_who_wants_too_much_memory_gets_none(sandbox):
    with pytest.raises(SandboxEnded) as ended:
        await sandbox("eat", memory_bytes=300_000_000).call()
    assert ended.value.end == "out of memory"


async def test_who_aborts_crashed_and_who_is_killed_is_lost(sandbox):
    with pytest.raises(SandboxEnded) as ended:
        await sandbox("abort").call()
    assert ended.value.end == "crashed"
    with pytest.raises(SandboxLost, match="killed from outside"):
        await sandbox("kill_itself").call()


async def test_a_child_that_ends_before_it_has_heard_everything_is_a_crash(sandbox):
    short = sandbox("echo", memory_bytes=60_000_000)  # cannot even hold the argument
    with pytest.raises(SandboxEnded):
        await short.call(bytes(60_000_000))
    with pytest.raises(SandboxEnded):
        await sandbox("exit_at_once").call(bytes(10_000_000))


async def test_an_answer_above_the_limit_is_not_read(sandbox):
    echo = sandbox("echo", answer_bytes=1000)
    assert len(await echo.call(bytes(1000))) == 1000
    with pytest.raises(SandboxEnded, match="larger"):
        await echo.call(bytes(1001))
    with pytest.raises(SandboxEnded, match="larger"):
        await sandbox("parts").call_parts("10001")


async def test_after_every_misfortune_the_next_call_works(sandbox):
    for name in ("fail", "refuse"):
        box = sandbox(name)
        for _ in range(2):
            with pytest.raises((SandboxEnded, SandboxRefusal)):
                await box.call("again")


async def test_a_child_can_open_nothing(sandbox):
    opened = await sandbox("try_everything").call()
    assert opened == b"[]"


@linux
async def test_the_limits_are_the_childs(sandbox):
    found = await sandbox("own_limits", cpu_s=7, memory_bytes=222_000_000).call()
    assert eval(found) == {
        "AS": (222_000_000, 222_000_000),
        "CPU": (7, 9),
        "FSIZE": (0, 0),
        "CORE": (0, 0),
        "NOFILE": (0, 0),
    }


@linux
async def test_a_call_before_a_payment_has_lower_limits(sandbox):
    limits = {"memory_bytes": 222_000_000, "cpu_s": 7}
    lower = {"unpaid_memory_bytes": 200_000_000, "unpaid_cpu_s": 4}
    with metered(Meter()):
        found = eval(await sandbox("own_limits", **limits, **lower).call())
        assert (found["AS"][0], found["CPU"][0]) == (200_000_000, 4)
        found = eval(await sandbox("own_limits", **limits).call())
        assert (found["AS"][0], found["CPU"][0]) == (222_000_000, 7)
    assert SandboxLimits().before_payment().nice > SandboxLimits().nice


async def test_nothing_of_the_gateways_environment_is_seen(sandbox, monkeypatch):
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "0xsecret")
    found = (await sandbox("environment").call()).decode()
    names = {line.partition("=")[0] for line in found.splitlines()}
    assert names <= {
        *("LANG", "LC_CTYPE", "MALLOC_ARENA_MAX", "LD_LIBRARY_PATH"),
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"),
    }


async def test_the_warmed_process_loads_no_more_of_the_gateway_than_it_needs(sandbox):
    loaded = (await sandbox("modules").call()).decode().splitlines()
    ours = {name for name in loaded if name.partition(".")[0] == "gateway"}
    assert ours == {
        # Without its content: `gateway.domain` would load the modules inside it.
        *("gateway", "gateway.domain", "gateway.sandbox", "gateway.sandbox.errors"),
        *("gateway.sandbox.limits", "gateway.sandbox.child", "gateway.sandbox.child.work"),
        *("gateway.sandbox.child.confinement", "gateway.sandbox.child.fork_server"),
        *("gateway.sandbox.child.machine", "gateway.sandbox.child.prctl"),
        *("gateway.sandbox.child.seccomp", "gateway.sandbox.child.system_calls"),
    }
    assert not {"asyncio", "httpx2", "quart", "PIL"} & set(loaded)


async def test_what_is_warmed_is_there_in_every_child(sandbox):
    name = sandbox_functions.__name__
    box = sandbox("tell_warmed", warm=("wave", f"{name}:warm"))
    assert [await box.call() for _ in range(2)] == [b"['yes']"] * 2


async def test_an_authors_module_may_use_the_gateway_if_it_warms_it(sandbox):
    box = sandbox("use_the_gateway", warm=(f"{sandbox_functions.__name__}:use_the_gateway",))
    assert await box.call() == b"20000"


async def test_no_more_children_than_allowed_run_at_once(sandbox):
    box = sandbox("sleep", wall_s=60, children=2)
    tasks = [asyncio.create_task(box.call()) for _ in range(5)]
    await until(lambda: box.is_running and len(children_of(box._running.process.pid)) == 2)
    assert sum(task.done() for task in tasks) == 0
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_limits_are_checked():
    for name in ("memory_bytes", "cpu_s", "wall_s", "children", "answer_bytes", "idle_s"):
        with pytest.raises(ValueError, match=name):
            SandboxLimits(**{name: 0})


async def test_others_have_their_turn_after_every_piece(monkeypatch):
    """`sock_recv` does not yield if data is there already."""
    monkeypatch.setattr(process, "_PIECE_BYTES", 1000)
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0)
        theirs.sendall(work.HEAD.pack(work.REFUSAL, 50_000) + bytes(50_000))
        counting = asyncio.create_task(count())
        assert await process.read_answer(ours, 1) == (work.REFUSAL, (bytes(50_000),))
        counting.cancel()
    assert turns >= 49


async def test_the_packages_around_a_function_are_not_run_unless_they_are_used():
    for name, answer in {"tell_whether_the_package_ran": b"no", "use_the_package": b"an "}.items():
        function = f"sandbox_package.deep:{name}"
        box = Sandbox(function=function, warm=(function,))
        assert (await box.call()).startswith(answer)
        box.close()


def test_it_works_on_uvloop(sandbox):
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        data = os.urandom(5_000_000)
        assert runner.run(sandbox("echo").call(data)) == data
        assert runner.run(sandbox("join").call("", b"")) == b"''|b''"
