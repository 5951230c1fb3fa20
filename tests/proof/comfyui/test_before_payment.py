"""Refusals before the payment, and health: words, dead and old machines, broken workflows."""

import asyncio

import attrs
import pytest

from gateway import AccountProblem, ExecutionError, InvalidInput, Transient
from tests.proof.comfyui import graphs
from tests.proof.comfyui.selling import BOAT, job_of, make_provider


@pytest.mark.parametrize("words", ["a cat, Embedding:secret", "x <LoRA:y:1>"])
async def test_words_by_which_nodes_load_files_are_refused(provider, comfy, words):
    with pytest.raises(InvalidInput, match="must not contain"):
        await provider.validate(attrs.evolve(BOAT, prompt=words), job_of(provider).endpoint)


async def test_many_buyers_share_one_question_to_the_machines(provider, comfy):
    endpoint = job_of(provider).endpoint
    await asyncio.gather(*(provider.validate(BOAT, endpoint) for _ in range(50)))
    assert comfy.asked.count("GET /system_stats") == 1
    assert comfy.asked.count("GET /prompt") == 1
    comfy.is_away = True
    provider._asked_at = float("-inf")
    before = len(comfy.asked)
    refused = [provider.validate(BOAT, endpoint) for _ in range(50)]
    found = await asyncio.gather(*refused, return_exceptions=True)
    assert all(isinstance(one, ExecutionError) for one in found)
    assert len(comfy.asked) == before + 1


async def test_sales_go_on_as_soon_as_a_machine_is_back(provider, comfy):
    endpoint = job_of(provider).endpoint
    comfy.is_away = True
    with pytest.raises(ExecutionError):
        await provider.validate(BOAT, endpoint)
    comfy.is_away = False
    provider._asked_at = float("-inf")
    await provider.validate(BOAT, endpoint)


@pytest.mark.parametrize("version", ["0.3.57", "0.2.99", "0.3", ""])
async def test_a_comfyui_that_is_too_old_is_not_used(provider, comfy, version):
    comfy.version = version
    with pytest.raises(AccountProblem, match=r"0\.3\.58 or newer"):
        await provider.health()
    for _ in range(2):
        with pytest.raises(ExecutionError):
            await provider.validate(BOAT, job_of(provider).endpoint)
        # As if the answer were old.
        provider._asked_at = float("-inf")
    with pytest.raises(AccountProblem):
        await provider.submit(BOAT, job_of(provider))
    assert comfy.orders == []


@pytest.mark.parametrize("version", ["0.3.58", "0.3.64", "0.33.0", "1.0"])
async def test_a_newer_comfyui_is_used(provider, comfy, version):
    comfy.version = version
    await provider.health()


async def test_one_machine_that_works_is_enough(comfy, comfy_2, folder):
    provider = make_provider(comfy.url, comfy_2.url, folder=folder)
    comfy.is_away, comfy_2.held = True, True
    await provider.health()
    shown = "; ".join(provider.notes)
    assert "it does not answer" in shown
    assert "ComfyUI 0.33.0, 0 jobs in its queue" in shown
    await provider.submit(BOAT, job_of(provider))
    assert len(comfy_2.orders) == 1
    # The silent one is not asked by each buyer.
    before = len(comfy.asked)
    for _ in range(3):
        provider._asked_at = float("-inf")
        await provider.validate(BOAT, job_of(provider).endpoint)
    assert len(comfy.asked) == before
    comfy_2.is_away = True
    with pytest.raises(Transient, match="No ComfyUI works"):
        await provider.health()
    await provider.close()


FAULTS = [
    ("clip", "--disable-metadata", lambda comfy: comfy.argv.remove("--disable-metadata")),
    ("picture", "no node SlowImage", lambda comfy: comfy.nodes.pop("SlowImage")),
    ("upscale", "bills each run", lambda comfy: comfy.nodes["ImageScaleBy"].update(api_node=True)),
    (
        "clip",
        "format 'auto' is not there",
        lambda comfy: comfy.nodes["SaveVideo"]["input"]["required"].update(format=[["mp4"]]),
    ),
]


@pytest.mark.parametrize(("slug", "reason", "spoil"), FAULTS, ids=[one[1] for one in FAULTS])
async def test_a_workflow_that_cannot_run_is_refused_before_the_payment(
    provider, comfy, slug, reason, spoil
):
    spoil(comfy)
    await provider.health()
    assert any(note.startswith(f"{slug} is not sold") and reason in note for note in provider.notes)
    with pytest.raises(ExecutionError, match="cannot make this now"):
        await provider.validate(BOAT, job_of(provider, slug).endpoint)


SAVED = {"images": ["2", 0], "filename_prefix": "a"}


@pytest.mark.parametrize(
    ("kind", "inputs", "is_sold"),
    [
        ("SaveWEBM", {}, False),
        ("VHS_VideoCombine", {}, False),
        ("VHS_VideoCombine", {"save_metadata": True}, False),
        ("VHS_VideoCombine", {"save_metadata": False}, True),
    ],
)
async def test_a_node_that_always_saves_the_workflow_is_refused_before_the_payment(
    provider, comfy, folder, kind, inputs, is_sold
):
    comfy.nodes[kind] = comfy.nodes["SaveImage"]
    save = {"class_type": kind, "inputs": SAVED | inputs}
    graphs.write(folder, "clip", graphs.CLIP | {"9": save}, graphs.CLIP_TOML)
    provider.read_folder()
    await provider.health()
    assert any("writes the workflow into its files" in note for note in provider.notes) != is_sold


async def test_options_with_inputs_of_their_own_are_compared_by_their_keys(provider, comfy):
    options = [{"key": "auto", "inputs": {"required": {}}}, {"key": "mp4", "inputs": {}}]
    needed = comfy.nodes["SaveVideo"]["input"]["required"]
    needed["format"] = ["COMFY_DYNAMICCOMBO_V3", {"options": options}]
    await provider.health()
    assert not provider.report.faults
    del options[0]
    await provider.health()
    assert "format 'auto' is not there" in provider.report.faults["clip"]


async def test_a_login_in_front_of_comfyui_is_named_if_it_refuses(comfy, folder):
    comfy.needs_key = "Bearer right"
    wrong = make_provider(comfy.url, folder=folder, authorization="Bearer wrong")
    with pytest.raises(AccountProblem, match="401"):
        await wrong.health()
    right = make_provider(comfy.url, folder=folder, authorization="Bearer right")
    await right.health()
    for provider in (wrong, right):
        await provider.close()


async def test_an_address_that_is_no_comfyui_is_named(httpserver, folder):
    httpserver.no_handler_status_code = 404
    provider = make_provider(httpserver.url_for("").rstrip("/"), folder=folder)
    with pytest.raises(AccountProblem, match="GATEWAY_COMFYUI_URLS"):
        await provider.health()
    await provider.close()
