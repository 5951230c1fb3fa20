"""Each recorded answer of ComfyUI, and its meaning for a sale."""

import json

import attrs
import pytest
from werkzeug import Response

from gateway import (
    AccountProblem,
    Attachment,
    HandleLost,
    InvalidInput,
    JobFailed,
    Pending,
    Transient,
)
from gateway_comfyui.metadata import holds_graph
from gateway_testing.provider.samples import PICTURE
from tests.proof.comfyui import graphs
from tests.proof.comfyui.selling import BOAT, PROMPT, job_of, make_provider

PHOTO = Attachment(name="me at home.PNG", data=PICTURE)


def put(folder, provider, graph, name="picture", toml=graphs.PICTURE_TOML) -> None:
    graphs.write(folder, name, graph, toml)
    provider.read_folder()


async def made(provider, request=BOAT, slug="picture", **fields):
    job = job_of(provider, slug, **fields)
    return await provider.poll(await provider.submit(request, job), job)


# -- submits


async def test_an_order_has_the_buyers_values_as_text_and_numbers_only(provider, comfy):
    words = '"], "x": ["1", 0], {"prompt": "'
    await made(provider, attrs.evolve(BOAT, prompt=words, aspect_ratio="16:9", resolution="2K"))
    (order,) = comfy.orders
    inputs = {number: node["inputs"] for number, node in order["prompt"].items()}
    assert inputs["2"]["text"] == words
    assert (inputs["1"]["width"], inputs["1"]["height"]) == (688, 384)
    assert inputs["9"]["filename_prefix"] == f"gateway/{order['prompt_id']}"
    assert order["client_id"]
    assert "number" not in order


async def test_two_buyers_of_one_prompt_get_different_seeds_and_files(provider, comfy):
    for task_id in ("a", "b"):
        await made(provider, task_id=task_id)
    one, other = (order["prompt"] for order in comfy.orders)
    assert one["2"]["inputs"]["seed"] != other["2"]["inputs"]["seed"]
    assert len(comfy.files) == 2


async def test_an_attempt_has_one_id_and_the_next_attempt_another(provider, comfy):
    comfy.held = True
    handles = [await provider.submit(BOAT, job_of(provider)) for _ in range(2)]
    assert handles[0] == handles[1]
    assert len(comfy.orders) == 1
    comfy.restart()
    again = await provider.submit(BOAT, job_of(provider, attempt=2))
    assert again.id != handles[0].id


async def test_a_failed_try_is_not_taken_for_the_next_one(provider, comfy, folder):
    put(folder, provider, graphs.changed(graphs.PICTURE, n2_mode="error"))
    with pytest.raises(JobFailed):
        await made(provider)
    put(folder, provider, graphs.PICTURE)
    assert (await made(provider, attempt=2)).outputs


async def test_a_result_that_the_gateway_refused_is_made_again(provider, comfy):
    await made(provider)
    await made(provider, attempt=2)
    assert len(comfy.orders) == 2


async def test_an_answer_with_another_id_is_an_old_comfyui(provider, comfy, monkeypatch):
    taken = comfy._queue
    other = "00000000-0000-4000-8000-000000000009"
    monkeypatch.setattr(comfy, "_queue", lambda o, g: taken(o | {"prompt_id": other}, g))
    comfy.held = True
    with pytest.raises(AccountProblem, match="ignores the id"):
        await provider.submit(BOAT, job_of(provider))
    # Its job is stopped.
    assert comfy.queue == []


BAD_NODE = {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "x.safetensors"}}


@pytest.mark.parametrize("version", ["0.33.0", "0.3.64"])
async def test_an_unknown_node_takes_the_workflow_off_sale(provider, comfy, version):
    comfy.version = version
    del comfy.nodes["SlowImage"]
    with pytest.raises(AccountProblem, match="NoSuchNode") as caught:
        await provider.submit(BOAT, job_of(provider))
    assert caught.value.scope == "model"


async def test_a_missing_model_takes_the_workflow_off_sale(provider, comfy, folder):
    put(folder, provider, graphs.PICTURE | {"2": BAD_NODE}, toml=PLAIN)
    with pytest.raises(AccountProblem, match=r"ckpt_name: value_not_in_list") as caught:
        await provider.submit(BOAT, job_of(provider))
    assert caught.value.scope == "model"
    assert "SECRET" not in str(caught.value)


PLAIN = """
title = "Picture"
capability = "text-to-image"
price = "0.03"
output = "9"
[inputs]
prompt = "9.filename_prefix"
"""


async def test_a_success_that_leaves_the_sold_output_out_is_a_refusal(provider, comfy, folder):
    other = {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "o"}}
    put(folder, provider, graphs.PICTURE | {"2": BAD_NODE, "10": other}, toml=PLAIN)
    comfy.held = True
    with pytest.raises(AccountProblem, match="node 2"):
        await provider.submit(BOAT, job_of(provider))
    # The other output is not made, either.
    assert (comfy.queue, comfy.ran) == ([], [])


async def test_only_a_prompt_is_the_buyers_fault(provider, comfy):
    with pytest.raises(InvalidInput) as caught:
        await made(provider, attrs.evolve(BOAT, prompt="unsayable"))
    assert "SECRET" not in str(caught.value)


async def test_a_size_that_a_node_refuses_is_a_choice_that_the_operator_offers(
    provider, comfy, folder
):
    put(folder, provider, graphs.PICTURE, toml=graphs.PICTURE_TOML.replace("512", "16384"))
    request = attrs.evolve(BOAT, aspect_ratio="16:9", resolution="2K")
    with pytest.raises(AccountProblem) as caught:
        await provider.submit(request, job_of(provider))
    assert caught.value.scope == "choice"


async def test_a_graph_that_comfyui_cannot_read_is_the_workflows_fault(
    provider, comfy, monkeypatch
):
    monkeypatch.setattr(comfy, "_queue", lambda *_: Response("500 Internal Server Error", 500))
    with pytest.raises(JobFailed, match="queued nothing"):
        await provider.submit(BOAT, job_of(provider))


# -- jobs


async def test_a_job_waits_runs_and_ends_and_progress_follows_past_runs(provider, comfy):
    comfy.held = True
    jobs = [job_of(provider, task_id=str(number)) for number in range(2)]
    handles = [await provider.submit(BOAT, job) for job in jobs]
    running, waiting = [
        await provider.poll(handle, job) for handle, job in zip(handles, jobs, strict=True)
    ]
    assert (running.progress, waiting.progress) == (None, 0.0)
    comfy.held = False
    assert (await provider.poll(handles[0], jobs[0])).outputs
    comfy.held = True
    third = job_of(provider, task_id="3")
    handle = await provider.submit(BOAT, third)
    shown = await provider.poll(handle, third)
    assert isinstance(shown, Pending)
    assert 0 <= shown.progress < 1


async def test_a_job_that_was_deleted_is_lost(provider, comfy):
    comfy.held = True
    job = job_of(provider)
    handle = await provider.submit(BOAT, job)
    comfy.restart()
    with pytest.raises(HandleLost, match="restarted"):
        await provider.poll(handle, job)


async def test_an_answer_that_is_not_comfyuis_proves_nothing(provider, comfy, monkeypatch):
    comfy.held = True
    job = job_of(provider)
    handle = await provider.submit(BOAT, job)
    monkeypatch.setattr(comfy, "_get_history", lambda _: Response("<html>Log in</html>"))
    with pytest.raises(Transient):
        await provider.poll(handle, job)


@pytest.mark.parametrize("place", [0, 1])
async def test_cancel_stops_one_job_whether_it_waits_or_runs(provider, comfy, place):
    comfy.held = True
    handles = [
        await provider.submit(BOAT, job_of(provider, task_id=str(number))) for number in range(2)
    ]
    await provider.cancel(handles[place])
    assert [one["id"] for one in comfy.queue] == [handles[1 - place].id]


async def test_an_interrupted_job_is_a_failed_one(provider, comfy):
    comfy.held = True
    job = job_of(provider)
    handle = await provider.submit(BOAT, job)
    await provider.cancel(handle)
    with pytest.raises(JobFailed, match="interrupted"):
        await provider.poll(handle, job)


async def test_a_job_of_a_machine_that_was_taken_out_is_lost(provider, comfy, folder):
    job = job_of(provider)
    handle = await provider.submit(BOAT, job)
    other = make_provider("http://127.0.0.1:1", folder=folder)
    with pytest.raises(HandleLost, match="GATEWAY_COMFYUI_URLS"):
        await other.poll(handle, job)


async def test_a_begun_job_is_finished_after_its_workflow_was_removed(provider, comfy, folder):
    job = job_of(provider)
    handle = await provider.submit(BOAT, job)
    (folder / "picture.toml").unlink()
    provider.read_folder()
    assert (await provider.poll(handle, job)).outputs
    with pytest.raises(AccountProblem) as caught:
        await provider.submit(BOAT, attrs.evolve(job, task_id="other"))
    assert caught.value.scope == "model"


# -- files


async def test_a_sold_png_holds_no_graph(provider, comfy):
    (output,) = (await made(provider)).outputs
    (kept,) = comfy.files.values()
    assert b"class_type" in kept
    assert b"class_type" not in output.data
    assert PROMPT.encode() not in output.data
    assert output.data.startswith(b"\x89PNG")
    assert output.media_type == "image/png"


async def test_a_video_is_listed_as_a_picture_and_sold_as_a_video(provider, comfy):
    (output,) = (await made(provider, slug="clip")).outputs
    assert output.media_type == "video/mp4"


async def test_a_video_with_the_graph_is_not_delivered(provider, comfy):
    comfy.argv = ["main.py"]
    with pytest.raises(JobFailed, match="--disable-metadata"):
        await made(provider, slug="clip")


async def test_a_file_that_was_deleted_is_made_again(provider, comfy, monkeypatch):
    job = job_of(provider)
    handle = await provider.submit(BOAT, job)
    assert (await provider.poll(handle, job)).outputs
    comfy.files.clear()
    with pytest.raises(JobFailed, match="no longer has the file"):
        await provider.poll(handle, job)
    assert (await made(provider, attempt=2)).outputs
    assert len(comfy.orders) == 2


@pytest.mark.parametrize("code", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_graph_is_found_in_the_encodings_of_camera_data(code):
    graph = '{"1": {"class_type": "SaveImage"}}'.encode(code)
    assert holds_graph(b"RIFF....WEBPEXIF" + graph)
    assert not holds_graph(b"RIFF....WEBPEXIF" + graph.replace(b"c", b"k"))


@pytest.mark.parametrize("encoded", [lambda one: json.dumps(json.dumps(one)), str])
def test_a_graph_is_found_with_any_quotes(encoded):
    assert holds_graph(b"ftypisom" + encoded(graphs.CLIP).encode())


async def test_a_run_without_a_file_is_a_failure_of_its_workflow(provider, comfy, monkeypatch):
    monkeypatch.setattr(comfy, "_save", lambda *_: {})
    with pytest.raises(JobFailed, match="without a file of node 9"):
        await made(provider)


async def test_a_picture_is_uploaded_under_a_name_of_ours(provider, comfy):
    request = attrs.evolve(BOAT, prompt="", attachment=PHOTO)
    await made(provider, request, slug="upscale")
    (order,) = comfy.orders
    name = f"gateway/{order['prompt_id']}.png"
    assert comfy.uploads == {name: PICTURE}
    assert order["prompt"]["1"]["inputs"]["image"] == name


async def test_an_upload_that_comfyui_lost_is_sent_again(provider, comfy, monkeypatch):
    keep = comfy._post_upload
    monkeypatch.setattr(comfy, "_post_upload", lambda ask: (keep(ask), comfy.uploads.clear())[0])
    with pytest.raises(Transient, match="uploaded picture"):
        await made(provider, attrs.evolve(BOAT, attachment=PHOTO), slug="upscale")
