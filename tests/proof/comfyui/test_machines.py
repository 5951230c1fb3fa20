"""Several machines: one that is silent or refuses costs no paid job, and doubles none."""

import attrs
import pytest
from werkzeug import Response

from gateway import HandleLost, JobFailed, Transient
from gateway.domain import TaskStatus
from tests.proof.comfyui import graphs
from tests.proof.comfyui.selling import BOAT, job_of, make_provider, selling
from tests.proof.comfyui.server import cut


@pytest.fixture
async def pair(comfy, comfy_2, folder):
    """A provider with two machines."""
    found = make_provider(comfy.url, comfy_2.url, folder=folder)
    yield found
    await found.close()


def silent_once(comfy, monkeypatch) -> None:
    """Cut the next answer about the history."""
    answers = [comfy._get_history, cut]

    def answer(request):
        return (answers.pop() if len(answers) > 1 else answers[0])(request)

    monkeypatch.setattr(comfy, "_get_history", answer)


async def test_a_begun_job_waits_while_no_machine_answers(pair, comfy, comfy_2, monkeypatch):
    monkeypatch.setattr("gateway_comfyui.provider._SILENT_S", -1.0)
    comfy.held = True
    job = job_of(pair)
    handle = await pair.submit(BOAT, job)
    comfy.is_away = comfy_2.is_away = True
    for _ in range(3):
        with pytest.raises(Transient):
            await pair.poll(handle, job)
    comfy_2.is_away = False
    with pytest.raises(HandleLost, match="another one begins again"):
        await pair.poll(handle, job)
    await pair.submit(BOAT, attrs.evolve(job, attempt=2))
    assert len(comfy_2.orders) == 1


async def test_a_machine_that_refuses_takes_nothing_off_sale(
    comfy, comfy_2, folder, tmp_path, results
):
    comfy.needs_key = "Bearer x"
    async with selling([comfy.url, comfy_2.url], folder, tmp_path / "d", results) as sales:
        task = await sales.gateway.buy_and_wait()
        assert task.status is TaskStatus.COMPLETED
        assert sales.is_on_sale("picture")
        assert sales.is_on_sale("clip")
    assert len(comfy_2.orders) == 1


async def test_a_machine_that_begins_to_refuse_in_mid_job_takes_nothing_off_sale(
    pair, comfy, monkeypatch
):
    comfy.held = True
    job = job_of(pair)
    handle = await pair.submit(BOAT, job)
    comfy.needs_key = "Bearer x"
    with pytest.raises(Transient, match="401"):
        await pair.poll(handle, job)
    monkeypatch.setattr("gateway_comfyui.provider._SILENT_S", -1.0)
    with pytest.raises(HandleLost):
        await pair.poll(handle, job)


async def test_a_machine_that_refuses_orders_is_left_to_the_next_attempt(
    pair, comfy, comfy_2, monkeypatch
):
    monkeypatch.setattr(comfy, "_post_prompt", lambda _: Response("", 403))
    job = job_of(pair)
    with pytest.raises(Transient, match="403"):
        await pair.submit(BOAT, job)
    await pair.submit(BOAT, attrs.evolve(job, attempt=2))
    assert len(comfy_2.orders) == 1


async def test_a_lookup_without_an_answer_doubles_no_job(provider, comfy, monkeypatch):
    comfy.held = True
    job = job_of(provider)
    handle = await provider.submit(BOAT, job)
    silent_once(comfy, monkeypatch)
    with pytest.raises(Transient):
        await provider.submit(BOAT, job)
    assert await provider.submit(BOAT, attrs.evolve(job, attempt=2)) == handle
    assert len(comfy.orders) == 1


async def test_the_machine_whose_lookup_failed_gets_no_job(pair, comfy, comfy_2, monkeypatch):
    silent_once(comfy, monkeypatch)
    await pair.submit(BOAT, job_of(pair))
    assert (len(comfy.orders), len(comfy_2.orders)) == (0, 1)


async def test_a_failed_job_is_reported_after_a_restart_and_not_begun_again(
    provider, comfy, folder
):
    graph = graphs.changed(graphs.PICTURE, n2_mode="error")
    graphs.write(folder, "picture", graph, graphs.PICTURE_TOML)
    provider.read_folder()
    job = job_of(provider)
    handle = await provider.submit(BOAT, job)
    # As if the gateway had ended before it stored the handle.
    again = await provider.submit(BOAT, job)
    assert again == handle
    with pytest.raises(JobFailed, match="SlowImage"):
        await provider.poll(again, job)
    assert len(comfy.orders) == 1
    await provider.submit(BOAT, attrs.evolve(job, attempt=2))
    assert len({order["prompt_id"] for order in comfy.orders}) == 2
