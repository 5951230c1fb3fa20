"""`gateway comfyui add`, `list`, `check` and `remove` against the fake ComfyUI."""

import json
import tomllib

import pytest
from click.testing import CliRunner

from gateway_comfyui.commands.comfyui import comfyui as command
from gateway_comfyui.folder import read_folder
from gateway_testing.fakes.api import PNG
from tests.proof.comfyui import graphs
from tests.proof.comfyui.server import with_graph


@pytest.fixture
def run(comfy, tmp_path, monkeypatch):
    """Run a command in an empty folder; returns exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GATEWAY_COMFYUI_URLS", comfy.url)
    monkeypatch.setenv("GATEWAY_COMFYUI_WORKFLOWS", "workflows")
    monkeypatch.setattr("gateway_comfyui.commands.trial._POLL_S", 0.01)

    def invoke(*arguments):
        # click keeps the first names of the help option, and the snapshots show those of `gateway`.
        names = {"help_option_names": ["-h", "--help"]}
        done = CliRunner().invoke(command, list(map(str, arguments)), **names)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return invoke


def ran_once(comfy, graph=graphs.PICTURE) -> None:
    """The operator has pressed Run in ComfyUI."""
    node_id = "00000000-0000-4000-8000-000000000001"
    comfy.history[node_id] = {"prompt": [0, node_id, graph, {}, ["9"]], "outputs": {}}


def run_at(comfy, begun_ms: int, graph, **extra) -> None:
    """A run that began at a time."""
    comfy.history[str(begun_ms)] = {
        "prompt": [0, str(begun_ms), graph, extra, ["9"]],
        "outputs": {},
        "status": {"messages": [["execution_start", {"timestamp": begun_ms}]]},
    }


def test_the_last_run_is_put_on_sale(run, comfy, tmp_path):
    ran_once(comfy)
    code, shown = run("add", "--last", "--name", "portrait", "--price", "0.03", "--hour", "0.40")
    assert code == 0, shown
    assert "It made image/png" in shown
    assert "/api/x402/portrait" in shown
    about = tomllib.loads((tmp_path / "workflows" / "portrait.toml").read_text())
    assert about["capability"] == "text-to-image"
    assert about["inputs"] == {
        "prompt": "2.text",
        "seed": "2.seed",
        "width": "1.width",
        "height": "1.height",
    }
    assert about["sizes"] == {"512px": 512}
    assert 0 <= float(about["cost"]) < 0.03
    (workflow,) = read_folder(tmp_path / "workflows")
    assert workflow.graph == graphs.PICTURE
    # Its trial had the operator's prompt, and an id like a sale's.
    assert comfy.orders[-1]["prompt"]["2"]["inputs"]["text"] == "A small red boat on a calm sea"


def test_a_picture_and_a_file_are_put_on_sale(run, comfy, tmp_path):
    (tmp_path / "clip.json").write_text(json.dumps(graphs.CLIP))
    (tmp_path / "up.png").write_bytes(with_graph(PNG, graphs.UPSCALE))
    for source, name in (("clip.json", "clip"), ("up.png", "upscale")):
        code, shown = run("add", source, "--name", name, "--price", "0.05")
        assert code == 0, shown
    assert [(one.slug, one.capability) for one in read_folder(tmp_path / "workflows")] == [
        ("clip", "text-to-video"),
        ("upscale", "image-upscaling"),
    ]
    code, shown = run("list")
    assert code == 0
    assert "clip  text-to-video  0.05 USDC  ok" in shown
    assert "ComfyUI 0.33.0, 0 jobs in its queue" in shown


SDXL = {
    "3": {
        "class_type": "KSampler",
        "inputs": {
            "model": ["4", 0],
            "seed": 5,
            "steps": 20,
            "cfg": 8.0,
            "sampler_name": "euler",
            "scheduler": "simple",
            "positive": ["6", 0],
            "negative": ["7", 0],
            "latent_image": ["5", 0],
            "denoise": 1.0,
        },
    },
    "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sdxl.safetensors"}},
    "5": {
        "class_type": "EmptyLatentImage",
        "inputs": {"width": 832, "height": 1216, "batch_size": 1},
    },
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a cat", "clip": ["4", 1]}},
    "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "blurry", "clip": ["4", 1]}},
    "8": {"class_type": "VAEDecode", "inputs": {"samples": ["13", 0], "vae": ["4", 2]}},
    "9": {"class_type": "SaveImage", "inputs": {"images": ["8", 0], "filename_prefix": "c"}},
    "12": {"class_type": "CLIPTextEncode", "inputs": {"text": "a cat", "clip": ["4", 1]}},
}
SDXL["13"] = {
    "class_type": "KSampler",
    "inputs": SDXL["3"]["inputs"] | {"positive": ["12", 0], "latent_image": ["3", 0], "seed": 6},
}


def test_both_prompts_and_seeds_of_a_refiner_are_found_and_the_negative_one_stays(
    run, comfy, tmp_path
):
    comfy.nodes["CheckpointLoaderSimple"]["input"]["required"]["ckpt_name"] = [["sdxl.safetensors"]]
    ran_once(comfy, SDXL)
    code, shown = run("add", "--last", "--name", "cat", "--price", "0.03", "--no-trial")
    assert code == 0, shown
    (workflow,) = read_folder(tmp_path / "workflows")
    assert set(workflow.inputs["prompt"]) == {("6", "text"), ("12", "text")}
    assert set(workflow.inputs["seed"]) == {("3", "seed"), ("13", "seed")}
    assert dict(workflow.sizes) == {"1K": 1008}


def test_what_cannot_be_sold_is_refused_with_its_reason(run, comfy, tmp_path):
    add = ("add", "--last", "--name", "x", "--price", "0.03")
    cases = [
        (SDXL, "ckpt_name 'sdxl.safetensors' is not there"),
        (graphs.PICTURE | {"5": {"class_type": "Gone", "inputs": {}}}, "no node Gone: install it"),
        (
            graphs.PICTURE | {"5": {"class_type": "OpenAIDalle3", "inputs": {"prompt": "a"}}},
            "OpenAIDalle3 calls a service that bills each run",
        ),
        (graphs.CLIP | {"9": SDXL["9"] | {"class_type": "SaveWEBM"}}, "SaveWEBM always writes"),
    ]
    comfy.nodes["SaveWEBM"] = comfy.nodes["SaveImage"]
    for graph, reason in cases:
        ran_once(comfy, graph)
        code, shown = run(*add)
        assert code == 1
        assert reason in shown
    assert comfy.orders == []
    assert not (tmp_path / "workflows").exists()


def test_a_price_below_the_cost_stops_it(run, comfy, tmp_path):
    ran_once(comfy)
    code, shown = run("add", "--last", "--name", "x", "--price", "0.000001", "--hour", "100000")
    assert code == 1
    assert "more than the price" in shown
    assert not (tmp_path / "workflows").exists()


def test_a_guess_that_is_not_complete_becomes_a_draft(run, comfy, tmp_path):
    graph = {"1": graphs.PICTURE["1"], "9": graphs.changed(graphs.PICTURE, n9_images=["1", 0])["9"]}
    ran_once(comfy, graph)
    code, shown = run("add", "--last", "--name", "plain", "--price", "0.03")
    assert code == 1
    assert "text-to-image needs prompt in [inputs]. Complete" in shown
    assert (tmp_path / "workflows" / "plain.toml.draft").exists()
    assert read_folder(tmp_path / "workflows") == []


def test_a_replacement_that_fails_keeps_the_workflow_on_sale(run, comfy, tmp_path):
    folder = graphs.write_all(tmp_path / "workflows")
    ran_once(
        comfy,
        {"1": graphs.PICTURE["1"], "9": graphs.changed(graphs.PICTURE, n9_images=["1", 0])["9"]},
    )
    code, shown = run("add", "--last", "--name", "picture", "--price", "0.03", "--replace")
    assert code == 1
    assert "picture.json.draft" in shown
    assert len(read_folder(folder)) == 3
    assert json.loads((folder / "picture.json").read_text()) == graphs.PICTURE
    assert {one.name for one in folder.glob("picture*")} == {
        "picture.json",
        "picture.toml",
        "picture.json.draft",
        "picture.toml.draft",
    }


def test_a_title_may_have_any_character(run, comfy, tmp_path):
    ran_once(comfy)
    title = 'A "portrait" \N{ARTIST PALETTE}'
    code, shown = run("add", "--last", "--name", "a", "--price", "0.03", "--title", title)
    assert code == 0, shown
    assert read_folder(tmp_path / "workflows")[0].title == title


def test_the_last_run_is_the_operators_own_on_any_machine(
    run, comfy, comfy_2, monkeypatch, tmp_path
):
    monkeypatch.setenv("GATEWAY_COMFYUI_URLS", f"{comfy.url},{comfy_2.url}")
    no_trial = ("add", "--last", "--price", "0.03", "--no-trial", "--name")
    run_at(comfy, 1_000, graphs.CLIP)
    run_at(comfy_2, 2_000, graphs.PICTURE)
    # A buyer's: by its client, and by its file.
    bought = graphs.changed(graphs.PICTURE, n2_text="a buyer's words")
    run_at(comfy, 3_000, bought, client_id="gateway")
    run_at(comfy, 4_000, graphs.changed(bought, n9_filename_prefix="gateway/1"))
    assert run(*no_trial, "one")[0] == 0
    comfy_2.is_away = True
    code, shown = run(*no_trial, "two")
    assert code == 0
    assert "its runs are left out" in shown
    one, two = read_folder(tmp_path / "workflows")
    assert (one.graph, two.graph) == (graphs.PICTURE, graphs.CLIP)


def test_wrong_arguments_are_one_sentence(run, comfy, tmp_path):
    assert "history of the ComfyUI at" in run("add", "--last", "--name", "x", "--price", "1")[1]
    assert "Name one source" in run("add", "--name", "x", "--price", "1")[1]
    assert "Example: --price 0.03" in run("add", "--last", "--name", "x", "--price", "free")[1]
    graphs.write_all(tmp_path / "workflows")
    assert (
        "exists. Choose another --name" in run("add", "--last", "--name", "clip", "--price", "1")[1]
    )
    comfy.is_away = True
    code, shown = run("add", "--last", "--name", "x", "--price", "1")
    assert code == 1
    assert shown.startswith("gateway: No ComfyUI answers at localhost:")


def test_check_names_every_problem_and_ends_with_one(run, comfy, tmp_path):
    folder = graphs.write_all(tmp_path / "workflows")
    assert run("check")[0] == 0
    comfy.argv.remove("--disable-metadata")
    (folder / "upscale.toml").write_text("title = 3")
    code, shown = run("check")
    assert code == 1
    assert "clip  text-to-video  0.05 USDC  not sold: Its files would hold" in shown
    assert "upscale  not sold: upscale.toml: capability is missing." in shown
    assert run("check", "picture")[0] == 0
    assert "It has: clip, picture, upscale." in run("check", "nothing")[1]


def test_remove_promises_no_end_of_paid_tasks_and_deletes_both_files(run, tmp_path):
    folder = graphs.write_all(tmp_path / "workflows")
    assert "refunds are due" in run("remove", "--help")[1]
    assert run("remove", "clip")[0] == 0
    assert [one.slug for one in read_folder(folder)] == ["picture", "upscale"]
    assert not (folder / "clip.json").exists()
    assert run("remove", "clip")[0] == 1
