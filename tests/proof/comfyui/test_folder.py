"""Each mistake in a folder of workflows is one sentence that names the file and the way out."""

import json

import pytest

import gateway_comfyui
from gateway import GenerationRequest, SettingsError
from gateway_comfyui import assembly
from gateway_comfyui.folder import read_folder
from gateway_comfyui.graphs import read_graph_file
from gateway_comfyui.settings import ComfyUISettings
from gateway_testing.fakes.api import PNG
from tests.proof.comfyui import graphs
from tests.proof.comfyui.server import with_graph

GOOD = graphs.PICTURE_TOML


def mistake_in(folder, toml, graph=graphs.PICTURE, name="picture") -> str:
    graphs.write(folder, name, graph, toml)
    with pytest.raises(SettingsError) as caught:
        read_folder(folder)
    return str(caught.value)


def test_a_folder_of_right_workflows_is_read(folder):
    assert [one.slug for one in read_folder(folder)] == ["clip", "picture", "upscale"]


MISTAKES = [
    (GOOD.replace('price = "0.03"', ""), "price is missing."),
    (GOOD.replace('"0.03"', "0.03"), "price is a text in quotes"),
    (GOOD.replace('"0.03"', '"free"'), "price is an amount of USDC in quotes"),
    (GOOD.replace("title", "titel"), "'titel' is none of title, description"),
    (GOOD.replace("text-to-image", "text-to-music"), "capability 'text-to-music' is none of"),
    (GOOD.replace('output = "9"', 'output = "8"'), "output '8' is no node of the workflow."),
    (GOOD.replace("2.text", "2.words"), "prompt is at 2.words, which the workflow does not have."),
    (GOOD.replace("2.text", "2.image"), "linked to node 1: name an input of that node."),
    (GOOD.replace("2.text", "2.seed"), "prompt is at 2.seed, which is no text in the workflow."),
    (GOOD.replace("2.seed", "2.text"), "seed is at 2.text, which is no whole number"),
    (GOOD.replace("1.width", "2.seconds"), "width is at 2.seconds, which is no whole number"),
    (GOOD.replace('"2.text"', '"text"'), 'such as prompt = "6.text".'),
    (GOOD.replace("prompt =", "negative ="), "[inputs] 'negative' is none of prompt, picture"),
    (GOOD.replace('prompt = "2.text"', ""), "text-to-image needs prompt in [inputs]."),
    (GOOD.replace('height = "1.height"', ""), "only one of width and height"),
    (GOOD.partition("[sizes]")[0], "width and height need the table [sizes]"),
    (GOOD.replace("512", '"512"'), '[sizes] "2K" is the side of a square in pixels'),
    (GOOD + '[prices]\n"1K" = "0.01"\n', "prices resolutions of [sizes] after the first: 2K."),
    (GOOD + '[prices]\n"2K" = "much"\n', '[prices] "2K" is an amount of USDC'),
    (GOOD.replace("120", '"120"'), "timeout_s is a number of seconds"),
    (f"step = 0\n{GOOD}", "step is a whole number from 1 to 1024"),
    (f'cost = "cheap"\n{GOOD}', "cost is in US dollars"),
    (f'refused = "embedding:"\n{GOOD}', "refused is a list of texts"),
    ("title = ", "picture.toml is no TOML"),
    (f"inputs = 3\n{GOOD.partition('[inputs]')[0]}", "inputs is a table: write [inputs]"),
    (
        GOOD.replace('seed = "2.seed"', 'picture = "2.text"'),
        "text-to-image has no picture: take it out of [inputs].",
    ),
]


@pytest.mark.parametrize(("toml", "sentence"), MISTAKES, ids=[one[1] for one in MISTAKES])
def test_a_mistake_in_a_toml_is_named(tmp_path, toml, sentence):
    found = mistake_in(tmp_path, toml)
    assert found.startswith("picture.toml")
    assert sentence in found


def test_sound_needs_its_decoder(tmp_path, monkeypatch):
    toml = graphs.CLIP_TOML.replace("text-to-video", "text-to-audio")
    graphs.write(tmp_path, "sound", graphs.CLIP, toml)
    assert [one.capability for one in read_folder(tmp_path)] == ["text-to-audio"]
    monkeypatch.setattr("gateway_comfyui.folder.find_spec", lambda _: None)
    assert "install generation-gateway[audio]" in mistake_in(tmp_path, toml, name="sound")


def test_a_name_that_cannot_be_in_an_address_is_refused(tmp_path):
    assert "part of the address" in mistake_in(tmp_path, GOOD, name="My Picture")


def test_an_input_of_an_option_has_a_dot(tmp_path):
    graph = graphs.changed(graphs.PICTURE, **{"n1_resize_type.width": 512})
    toml = GOOD.replace("1.width", "1.resize_type.width")
    graphs.write(tmp_path, "picture", graph, toml)
    assert read_folder(tmp_path)[0].inputs["width"] == (("1", "resize_type.width"),)


def test_a_missing_graph_and_a_missing_folder_are_named(tmp_path):
    (tmp_path / "picture.toml").write_text(GOOD)
    with pytest.raises(SettingsError, match=r"picture\.toml needs picture\.json beside it"):
        read_folder(tmp_path)
    with pytest.raises(SettingsError, match="gateway comfyui add --last"):
        read_folder(tmp_path / "nowhere")


EDITOR = {"nodes": [{"id": 1, "type": "SaveImage"}], "links": [], "version": 0.4}


def test_the_editors_format_is_refused_with_the_way_to_the_other_one(tmp_path):
    found = mistake_in(tmp_path, GOOD, graph=EDITOR)
    assert found == (
        "picture.json is the workflow as the editor saves it. Run it once and use `--last`, name a "
        "picture that it made, or choose File > Export (API) in ComfyUI."
    )


@pytest.mark.parametrize("graph", [{}, [], 7, {"1": {"inputs": {}}}, {"1": []}])
def test_another_json_is_no_workflow(tmp_path, graph):
    assert "no workflow in API format" in mistake_in(tmp_path, GOOD, graph=graph)


def test_a_graph_is_read_from_a_picture_and_from_an_order(tmp_path):
    (tmp_path / "made.png").write_bytes(with_graph(PNG, graphs.PICTURE))
    assert read_graph_file(tmp_path / "made.png") == graphs.PICTURE
    (tmp_path / "order.json").write_text(json.dumps({"prompt": graphs.CLIP, "client_id": "x"}))
    assert read_graph_file(tmp_path / "order.json") == graphs.CLIP


def test_a_picture_without_a_graph_is_refused(tmp_path):
    (tmp_path / "photo.png").write_bytes(PNG)
    with pytest.raises(SettingsError, match="--disable-metadata"):
        read_graph_file(tmp_path / "photo.png")
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(SettingsError, match="neither JSON nor a PNG"):
        read_graph_file(tmp_path / "photo.jpg")


def test_what_a_run_adds_to_a_graph_is_dropped(tmp_path):
    node = graphs.UPSCALE["1"] | {"is_changed": ["abc"]}
    (tmp_path / "run.json").write_text(json.dumps(graphs.UPSCALE | {"1": node}))
    assert read_graph_file(tmp_path / "run.json") == graphs.UPSCALE


def test_sizes_follow_ratio_resolution_and_step(folder):
    workflow = {one.slug: one for one in read_folder(folder)}["picture"]

    def size(ratio, resolution):
        return workflow.size_of(GenerationRequest(aspect_ratio=ratio, resolution=resolution))

    assert (size("1:1", "1K"), size("16:9", "2K")) == ((256, 256), (688, 384))
    assert size("9:16", None) == (192, 336)


def test_a_resolution_promises_almost_the_pixels_that_are_ordered(folder):
    workflow = {one.slug: one for one in read_folder(folder)}["picture"]
    least = workflow.endpoint().least_pixels
    assert 0.8 * 256**2 < least["1K"] < 256**2
    assert 0.8 * 512**2 < least["2K"] < 512**2


def test_a_reload_keeps_the_provider_until_a_workflow_changes(folder):
    def offered():
        provider = assembly.make_provider(ComfyUISettings(workflows=str(folder)))
        assert provider.read_folder()
        return provider

    assert gateway_comfyui.reload_endpoints is gateway_comfyui.register_endpoints
    first = offered()
    assert offered() == first
    path = folder / "picture.json"
    graph = json.loads(path.read_text())
    node = next(iter(graph.values()))
    node["inputs"]["unused"] = 1
    path.write_text(json.dumps(graph))
    changed = offered()
    assert changed != first
    node["inputs"]["unused"] = True
    path.write_text(json.dumps(graph))
    assert offered() != changed
