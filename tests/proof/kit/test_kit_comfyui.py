"""The bundled provider of ComfyUI passes the kit."""

from typing import ClassVar

import pytest

import gateway_comfyui
from gateway.testing import FakeApi, ProviderContract, Reply
from tests.proof.comfyui import graphs
from tests.proof.comfyui.server import NEW, NODES


class ComfyUIApi(FakeApi):
    """A server that runs one job. Its client chooses the ids of its jobs."""

    submit = "POST /prompt"
    cancel = "POST /interrupt"
    poll = "GET /history/.*"
    others = "GET /(queue|prompt|system_stats|view|object_info/.*|history.*)|POST /(queue|free)"
    # It filters nothing, refuses no prompt and limits nothing: it is the operator's own machine.
    lacks = ("moderated", "account", "busy", "nothing")
    folder: ClassVar = None

    def __init__(self):
        self.ids = []
        self.alive = set()

    def settings(self, url):
        return {
            "comfyui_urls": [url],
            "comfyui_authorization": "Bearer never-to-be-seen",
            "comfyui_workflows": str(self.folder),
        }

    def job_id(self, number):
        return self.ids[number - 1] if number <= len(self.ids) else super().job_id(number)

    def accepted(self, ask):
        chosen = ask.json["prompt_id"]
        self.ids.append(chosen)
        self.alive.add(chosen)
        return Reply({"prompt_id": chosen, "number": len(self.ids), "node_errors": {}})

    def waiting(self, ask):
        self.alive.add(ask.job)
        return Reply({})

    def made(self, ask):
        file = {"filename": f"{ask.job}_00001_.png", "subfolder": "gateway", "type": "output"}
        return self._ended(ask, {"9": {"images": [file]}}, NEW["history done"]["status"])

    def failed(self, ask):
        return self._ended(ask, {}, NEW["history error"]["status"])

    def lost(self, ask):
        self.alive.discard(ask.job)
        return Reply({})

    def other(self, ask):
        name = ask.path.split("/")[1]
        if name == "view":
            return Reply(ask.made.data, headers={"Content-Type": "image/png"})
        if name == "queue":
            return Reply({"queue_running": [[0, one] for one in self.alive], "queue_pending": []})
        if name == "object_info":
            kind = ask.path.rpartition("/")[2]
            return Reply({kind: NODES[kind]})
        if name == "system_stats":
            return Reply({"system": {"comfyui_version": "0.33.0", "argv": []}})
        return Reply({"exec_info": {"queue_remaining": 0}} if name == "prompt" else {})

    def _ended(self, ask, outputs, status):
        self.alive.discard(ask.job)
        return Reply({ask.job: {"outputs": outputs, "status": status}})


@pytest.fixture(autouse=True, scope="session")
def _folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workflows")
    graphs.write(folder, "picture", graphs.PICTURE, graphs.PICTURE_TOML)
    ComfyUIApi.folder = folder


class TestComfyUI(ProviderContract):
    plugin = gateway_comfyui
    api = ComfyUIApi
