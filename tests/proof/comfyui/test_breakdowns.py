"""Gateway and ComfyUI are broken in every place. No buyer loses money, and no job runs twice."""

import pytest

from gateway import ExecutionError
from gateway.domain import PaymentState, TaskStatus
from tests.proof.comfyui import graphs
from tests.proof.comfyui.selling import PROMPT, selling


async def bought(sales, comfy) -> str:
    """Buy, and return once ComfyUI has the job."""
    before = len(comfy.orders)
    task_id = await sales.gateway.buy()
    await sales.wait_until("ComfyUI to get the job", lambda: len(comfy.orders) > before)
    return task_id


async def polled(sales, comfy) -> None:
    before = len(comfy.asked)
    await sales.wait_until("a poll", lambda: "GET /queue" in comfy.asked[before:])


def check_made(task, comfy, *, attempt: int, posts: int, runs: int) -> None:
    assert (task.status, task.attempt) == (TaskStatus.COMPLETED, attempt)
    assert (len(comfy.orders), len(comfy.ran)) == (posts, runs)


async def test_a_gateway_that_is_killed_in_mid_job_goes_on_with_it(sales, comfy):
    comfy.held = True
    task_id = await bought(sales, comfy)
    await polled(sales, comfy)
    await sales.gateway.crash_and_restart()
    comfy.held = False
    task = await sales.gateway.wait_for_end(task_id)
    check_made(task, comfy, attempt=1, posts=1, runs=1)


async def test_a_gateway_that_is_killed_before_the_answer_finds_its_job(sales, comfy):
    comfy.answers = ["wait"]
    task_id = await bought(sales, comfy)
    await sales.gateway.crash_and_restart()
    comfy.gate.set()
    task = await sales.gateway.wait_for_end(task_id)
    assert task.status is TaskStatus.COMPLETED
    assert (len(comfy.orders), len(comfy.ran)) == (1, 1)


@pytest.mark.parametrize("how", ["cut", "500"])
async def test_a_job_whose_answer_is_lost_is_found_at_once(sales, comfy, how):
    comfy.answers = [how]
    task = await sales.gateway.buy_and_wait()
    check_made(task, comfy, attempt=1, posts=1, runs=1)


@pytest.mark.parametrize("dies_too", [False, True])
async def test_a_job_that_comfyui_lost_is_made_again(sales, comfy, dies_too):
    comfy.held = True
    task_id = await bought(sales, comfy)
    await polled(sales, comfy)
    comfy.is_away = True
    if dies_too:
        await sales.gateway.crash_and_restart()
    comfy.restart()
    comfy.is_away = comfy.held = False
    task = await sales.gateway.wait_for_end(task_id)
    check_made(task, comfy, attempt=2, posts=2, runs=1)


async def test_a_job_of_a_machine_that_is_gone_is_made_by_the_other(
    comfy, comfy_2, folder, tmp_path, results, monkeypatch
):
    monkeypatch.setattr("gateway_comfyui.provider._SILENT_S", 0.0)
    comfy.held = comfy_2.held = True
    async with selling([comfy.url, comfy_2.url], folder, tmp_path / "d", results) as sales:
        task_id = await bought(sales, comfy)
        comfy.is_away, comfy_2.held = True, False
        task = await sales.gateway.wait_for_end(task_id)
    check_made(task, comfy_2, attempt=2, posts=1, runs=1)


async def test_sales_at_once_take_different_machines(comfy, comfy_2, folder, tmp_path, results):
    comfy.held = comfy_2.held = True
    async with selling([comfy.url, comfy_2.url], folder, tmp_path / "d", results) as sales:
        tasks = [await sales.gateway.buy(), await sales.gateway.buy()]
        await sales.wait_until("both to work", lambda: comfy.orders and comfy_2.orders)
        comfy.held = comfy_2.held = False
        for task_id in tasks:
            check_status = await sales.gateway.wait_for_end(task_id)
            assert check_status.status is TaskStatus.COMPLETED
    assert len(comfy.orders) == len(comfy_2.orders) == 1


async def test_when_the_only_machine_is_gone_a_refund_is_due_and_no_buyer_pays(sales, comfy):
    comfy.held = True
    task_id = await bought(sales, comfy)
    comfy.is_away = True
    sales.gateway.clock.ahead_s += sales.gateway.sold.endpoint.timeout_s
    task = await sales.gateway.wait_for_end(task_id)
    assert (task.details, task.payment.state) == ("timed_out", PaymentState.REFUND_DUE)
    sales.provider._asked_at = float("-inf")
    with pytest.raises(ExecutionError, match=r"does not answer"):
        await sales.gateway.request()


@pytest.mark.parametrize(("mode", "freed"), [("error", 0), ("memory", 4)])
async def test_a_node_that_fails_is_tried_four_times_and_the_log_has_no_prompt(
    sales, comfy, folder, mode, freed
):
    graph = graphs.changed(graphs.PICTURE, n2_mode=mode)
    graphs.write(folder, "picture", graph, graphs.PICTURE_TOML)
    sales.provider.read_folder()
    task = await sales.gateway.buy_and_wait()
    assert (task.status, task.attempt) == (TaskStatus.FAILED, 4)
    assert task.payment.state is PaymentState.REFUND_DUE
    assert (len(comfy.ran), comfy.freed) == (4, freed)
    assert len(set(comfy.ran)) == 4
    log = "\n".join(sales.logs)
    assert "Node SlowImage raised" in log
    assert PROMPT not in log


async def test_a_broken_workflow_takes_itself_alone_off_sale(sales, comfy, folder):
    graph = graphs.changed(graphs.PICTURE, n2_mode="error")
    graphs.write(folder, "picture", graph, graphs.PICTURE_TOML)
    sales.provider.read_folder()
    await sales.gateway.buy_and_wait()
    await sales.gateway.buy()
    await sales.wait_until("it to be off sale", lambda: not sales.is_on_sale("picture"))
    assert sales.is_on_sale("clip")
    assert sales.is_on_sale("upscale")


async def test_a_workflow_that_ends_comfyui_ends_it_three_times_at_most(sales, comfy, folder):
    graph = graphs.changed(graphs.PICTURE, n2_mode="exit")
    graphs.write(folder, "picture", graph, graphs.PICTURE_TOML)
    sales.provider.read_folder()
    task = await sales.gateway.buy_and_wait()
    assert (task.status, task.payment.state) == (TaskStatus.FAILED, PaymentState.REFUND_DUE)
    assert len(comfy.ran) == 3
    assert sales.is_on_sale("clip")


async def test_a_model_that_vanishes_takes_its_workflow_alone_off_sale(sales, comfy):
    await sales.gateway.request()
    del comfy.nodes["SlowImage"]
    task = await sales.gateway.buy_and_wait()
    assert (task.status, task.payment.state) == (TaskStatus.FAILED, PaymentState.REFUND_DUE)
    assert not sales.is_on_sale("picture")
    assert sales.is_on_sale("upscale")
    # The next inspection finds it before a payment.
    sales.provider._inspected_at = sales.provider._asked_at = float("-inf")
    with pytest.raises(ExecutionError, match=r"cannot make this now"):
        await sales.gateway.request()
