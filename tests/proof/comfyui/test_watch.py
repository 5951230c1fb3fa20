"""The operator sees machines, queues and unsold workflows."""

import pytest

import gateway_comfyui
from gateway import SettingsError
from gateway_comfyui import assembly
from gateway_comfyui.settings import ComfyUISettings
from gateway_comfyui.watch import Watch
from gateway_testing.fakes.chain import settings_of
from tests.proof.comfyui.selling import WALLET


@pytest.fixture
async def watch(comfy, comfy_2, folder):
    section = ComfyUISettings(workflows=str(folder), urls=(comfy.url, comfy_2.url))
    found = Watch(assembly.make_fleet(section), folder)
    yield found
    await found.fleet.close()


async def conditions(watch) -> dict[str, str]:
    await watch.inspect()
    return {f"{one.name}:{one.subject}": one.text for one in await watch.conditions()}


async def test_nothing_is_shown_while_all_works(watch):
    assert await conditions(watch) == {}


async def test_a_silent_machine_a_long_queue_and_a_fault_are_shown(watch, comfy, comfy_2):
    comfy.is_away = comfy_2.held = True
    comfy_2.queue = [{"id": str(n), "graph": {}, "outputs": []} for n in range(6)]
    del comfy_2.nodes["CreateVideo"]
    found = await conditions(watch)
    names = [one.url.removeprefix("http://") for one in (comfy, comfy_2)]
    assert "does not answer" in found[f"comfyui_machine:{names[0]}"]
    assert f"comfyui_queue:{names[1]}" in found
    assert "has no node CreateVideo" in found["comfyui_workflow:clip"]
    assert len(found) == 3


async def test_a_mistake_in_the_folder_keeps_the_last_findings(watch, folder):
    await watch.inspect()
    (folder / "clip.toml").write_text("title = ")
    with pytest.raises(SettingsError):
        await watch.inspect()
    assert len(watch.report.machines) == 2


async def test_the_check_has_a_row(comfy, folder, tmp_path):
    rows = {}
    values = {"comfyui_urls": [comfy.url], "comfyui_workflows": str(folder)}
    settings = settings_of(values, wallet=WALLET, data_dir=tmp_path)
    gateway_comfyui.register_check_rows(rows.__setitem__, settings)
    assert "ComfyUI 0.33.0, 0 jobs in its queue" in await rows["comfyui"]()
    comfy.argv.remove("--disable-metadata")
    with pytest.raises(SettingsError, match="clip: Its files would hold the whole workflow"):
        await rows["comfyui"]()
    comfy.is_away = True
    with pytest.raises(SettingsError, match="it does not answer"):
        await rows["comfyui"]()


@pytest.mark.parametrize("urls", [("http://me:hidden@127.0.0.1:8188",), ()])
def test_a_password_in_an_address_is_refused(folder, urls):
    with pytest.raises(SettingsError, match="GATEWAY_COMFYUI_AUTHORIZATION") as caught:
        assembly.make_fleet(ComfyUISettings(workflows=str(folder), urls=urls))
    assert "hidden" not in str(caught.value)
