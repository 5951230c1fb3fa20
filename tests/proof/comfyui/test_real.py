"""The same breakdowns with a real ComfyUI: `make comfyui COMFYUI=<its checkout>`."""

import asyncio
import json
import time
import urllib.request

import pytest
from click.testing import CliRunner

from gateway import ExecutionError
from gateway.domain import PaymentState, TaskStatus
from gateway_comfyui.commands.comfyui import comfyui as command
from tests.proof.comfyui import graphs
from tests.proof.comfyui.real import CHECKOUT, Proxy, RealComfy
from tests.proof.comfyui.selling import PROMPT, selling

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not CHECKOUT, reason="needs a ComfyUI: make comfyui COMFYUI=<folder>"),
]
SLOW = graphs.changed(graphs.PICTURE, n2_seconds=4.0)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    found = RealComfy(tmp_path_factory.mktemp("comfyui"), "--disable-metadata")
    found.start()
    yield found
    found.kill()


@pytest.fixture
def real(machine):
    """A running server."""
    if machine.has_ended():
        machine.start()
    return machine


@pytest.fixture
def shop(folder, tmp_path, results):
    """Sell the workflows at some addresses."""
    graphs.write(folder, "slow", SLOW, graphs.PICTURE_TOML)
    return lambda *urls: selling(urls, folder, tmp_path / "data", results, is_real=True)


async def begun(sales, real) -> str:
    """Buy the slow picture, and return while it is made."""
    before = real.posts
    sales.choose("slow", prompt=PROMPT)
    task_id = await sales.gateway.buy()
    await sales.wait_until("the job to begin", lambda: real.posts > before)
    # Its handle is durable by now, or its job is found by its id.
    await asyncio.sleep(1)
    return task_id


async def restart(real) -> None:
    await asyncio.to_thread(real.kill)
    await asyncio.to_thread(real.start)


def counted(real, before) -> tuple[int, int]:
    return real.posts - before[0], real.runs - before[1]


async def test_a_picture_an_upscale_and_a_video_are_sold(real, shop):
    async with shop(real.url) as sales:
        picture = await sales.gateway.buy_and_wait(resolution="2K", aspect_ratio="16:9")
        (png,) = sales.files(picture)
        assert (picture.result.outputs[0].width, picture.result.outputs[0].height) == (688, 384)
        sales.choose("upscale", file_name="a.png", file=png)
        (upscaled,) = (await sales.gateway.buy_and_wait()).result.outputs
        assert (upscaled.width, upscaled.height) == (1376, 768)
        sales.choose("clip", prompt=PROMPT)
        (video,) = (await sales.gateway.buy_and_wait()).result.outputs
        assert (video.media_type, round(video.seconds, 1)) == ("video/mp4", 1.0)
        assert video.key.endswith(".mp4")


async def test_a_gateway_that_is_killed_in_mid_job(real, shop):
    before = real.posts, real.runs
    async with shop(real.url) as sales:
        task_id = await begun(sales, real)
        await sales.gateway.crash_and_restart()
        task = await sales.gateway.wait_for_end(task_id)
    assert task.status is TaskStatus.COMPLETED
    assert counted(real, before) == (1, 1)


@pytest.mark.parametrize("how", ["cut", "hold"])
async def test_an_answer_that_is_lost(real, shop, how):
    before = real.posts, real.runs
    async with Proxy(real.port) as proxy, shop(proxy.url) as sales:
        sales.choose("slow", prompt=PROMPT)
        proxy.spoils = how
        task_id = await sales.gateway.buy()
        await proxy.seen.wait()
        if how == "hold":
            await sales.gateway.crash_and_restart()
        task = await sales.gateway.wait_for_end(task_id)
    assert task.status is TaskStatus.COMPLETED
    assert counted(real, before) == (1, 1)


@pytest.mark.parametrize("dies_too", [False, True])
async def test_a_comfyui_that_is_killed_in_mid_job(real, shop, dies_too):
    before = real.posts, real.runs
    async with shop(real.url) as sales:
        task_id = await begun(sales, real)
        if dies_too:
            await asyncio.to_thread(real.kill)
            await sales.gateway.crash_and_restart()
        await restart(real)
        task = await sales.gateway.wait_for_end(task_id)
    assert task.status is TaskStatus.COMPLETED
    assert counted(real, before) == (2, 1)


async def test_one_of_two_machines_is_gone_for_good(real, shop, tmp_path, monkeypatch):
    monkeypatch.setattr("gateway_comfyui.provider._SILENT_S", 2.0)
    other = RealComfy(tmp_path / "other", "--disable-metadata")
    await asyncio.to_thread(other.start)
    async with shop(other.url, real.url) as sales:
        task_id = await begun(sales, other)
        other.kill()
        task = await sales.gateway.wait_for_end(task_id)
    assert task.status is TaskStatus.COMPLETED


async def test_the_only_machine_is_gone_for_good(real, shop):
    async with shop(real.url) as sales:
        task_id = await begun(sales, real)
        real.kill()
        sales.gateway.clock.ahead_s += sales.gateway.sold.endpoint.timeout_s
        task = await sales.gateway.wait_for_end(task_id)
        assert (task.details, task.payment.state) == ("timed_out", PaymentState.REFUND_DUE)
        sales.provider._asked_at = float("-inf")
        with pytest.raises(ExecutionError):
            await sales.gateway.request()


@pytest.mark.parametrize("mode", ["error", "memory"])
async def test_a_node_that_fails(real, shop, folder, mode):
    before = real.posts
    graph = graphs.changed(graphs.PICTURE, n2_mode=mode)
    graphs.write(folder, "picture", graph, graphs.PICTURE_TOML)
    async with shop(real.url) as sales:
        task = await sales.gateway.buy_and_wait()
        log = "\n".join(sales.logs)
    assert (task.status, task.attempt) == (TaskStatus.FAILED, 4)
    assert real.posts - before == 4
    assert "Node SlowImage raised" in log
    assert PROMPT not in log


async def test_a_workflow_that_ends_comfyui(real, shop, folder):
    before = real.posts
    graph = graphs.changed(graphs.PICTURE, n2_mode="exit", n2_seconds=1.0)
    graphs.write(folder, "picture", graph, graphs.PICTURE_TOML)
    async with shop(real.url) as sales:
        task_id = await sales.gateway.buy()
        waiting = asyncio.create_task(sales.gateway.wait_for_end(task_id))
        while not waiting.done():
            await asyncio.sleep(0.2)
            if real.has_ended():
                await asyncio.to_thread(real.start)
        task = waiting.result()
    assert (task.status, task.payment.state) == (TaskStatus.FAILED, PaymentState.REFUND_DUE)
    assert real.posts - before == 3


async def test_a_missing_model_and_an_unknown_node(real, shop, folder):
    graph = graphs.PICTURE | {"7": {"class_type": "NoSuchNode", "inputs": {}}}
    graphs.write(folder, "picture", graph, graphs.PICTURE_TOML)
    loader = {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "x.safetensors"}}
    graphs.write(folder, "slow", graphs.PICTURE | {"7": loader}, graphs.PICTURE_TOML)
    async with shop(real.url) as sales:
        with pytest.raises(ExecutionError):
            await sales.gateway.request()
        faults = sales.provider.report.faults
    assert faults["picture"] == (
        "ComfyUI has no node NoSuchNode: install it, or take it out of the workflow."
    )
    assert "ckpt_name 'x.safetensors' is not there" in faults["slow"]


async def test_a_cancelled_job_is_stopped(real, shop):
    before = real.log.count("Processing interrupted")
    async with shop(real.url) as sales:
        task_id = await begun(sales, real)
        sales.gateway.clock.ahead_s += sales.gateway.sold.endpoint.timeout_s
        task = await sales.gateway.wait_for_end(task_id)
        assert task.details == "timed_out"
        machine = sales.provider.fleet.machines[0]
        async for _ in sales.gateway.wait_for("the job to end"):
            if await machine.queue_length() == 0:
                break
    assert real.log.count("Processing interrupted") > before


def test_a_server_that_writes_metadata_sells_no_graph(folder, tmp_path, results, tmp_path_factory):
    """A PNG is cleaned, a video is not sold, and a workflow is added from a picture."""
    talking = RealComfy(tmp_path_factory.mktemp("metadata"))
    talking.start()
    try:
        asyncio.run(_sell_without_graph(talking, folder, tmp_path, results))
        (kept, *_) = (talking.folder / "output" / "gateway").glob("*.png")
        assert b"class_type" in kept.read_bytes()
        _add_from(talking, kept, tmp_path / "added")
    finally:
        talking.kill()


async def _sell_without_graph(talking, folder, tmp_path, results) -> None:
    async with selling([talking.url], folder, tmp_path / "data", results, is_real=True) as sales:
        (png,) = sales.files(await sales.gateway.buy_and_wait())
        assert b"class_type" not in png
        sales.choose("clip", prompt=PROMPT)
        with pytest.raises(ExecutionError):
            await sales.gateway.request()
        assert "--disable-metadata" in sales.provider.report.faults["clip"]


def _run(talking, graph) -> None:
    """Run a workflow as ComfyUI's editor does, and wait for its end."""
    body = json.dumps({"prompt": graph, "client_id": "editor"}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{talking.url}/prompt", body)) as answer:
        job = json.load(answer)["prompt_id"]
    for _ in range(600):
        with urllib.request.urlopen(f"{talking.url}/history/{job}") as answer:
            if json.load(answer):
                return
        time.sleep(0.1)
    raise AssertionError("The run did not end.")


def _add_from(talking, picture, added) -> None:
    environment = {"GATEWAY_COMFYUI_URLS": talking.url, "GATEWAY_COMFYUI_WORKFLOWS": str(added)}
    arguments = ["add", str(picture), "--name", "from-picture", "--price", "0.03"]
    done = CliRunner().invoke(command, arguments, env=environment)
    assert done.exit_code == 0, done.output
    assert "It made image/png" in done.output
    last = ["add", "--last", "--name", "last", "--price", "0.03"]
    # Sales and trials are no runs of the operator's.
    assert "no run of yours" in CliRunner().invoke(command, last, env=environment).output
    _run(talking, graphs.PICTURE)
    done = CliRunner().invoke(command, last, env=environment)
    assert done.exit_code == 0, done.output
    graph = json.loads((added / "last.json").read_text())
    assert {node["class_type"] for node in graph.values()} == {
        "EmptyImage",
        "SlowImage",
        "SaveImage",
    }
    assert CliRunner().invoke(command, ["check"], env=environment).exit_code == 0
