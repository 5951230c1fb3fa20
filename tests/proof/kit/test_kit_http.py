"""The four examples of declared HTTP APIs pass the kit, each against a fake of its server."""

import shutil
from pathlib import Path

import pytest

import gateway_http
from gateway.testing import FakeApi, ProviderContract, Reply
from gateway_media import samples

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "http-endpoints"
KEY = "kokoro-key-never-to-be-seen"


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("KOKORO_KEY", KEY)


class LocalServer(FakeApi):
    """A server on the operator's machine, and the example that sells it."""

    example = ""
    lacks = ("moderated", "nothing", "failed", "page_range")

    def settings(self, url):
        folder = Path(self.folder)
        text = (EXAMPLES / f"{self.example}.toml").read_text()
        address = next(line for line in text.splitlines() if "http://127.0.0.1:" in line)
        old = "/".join(address.split('"')[1].split("/")[:3])
        (folder / f"{self.example}.toml").write_text(text.replace(old, url))
        return {"http_endpoints": str(folder)}


class _Contract(ProviderContract):
    plugin = gateway_http

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("endpoints")
        self.api.folder = folder
        yield
        shutil.rmtree(folder)


class ForgeApi(LocalServer):
    """`POST /sdapi/v1/txt2img`: pictures in Base64."""

    example = "forge-photo"
    submit = "POST /sdapi/v1/txt2img"
    others = "GET /sdapi/v1/options"

    def made(self, ask):
        return Reply({"images": [ask.made.base64], "parameters": {}, "info": "{}"})


@pytest.mark.full
class TestForge(_Contract):
    api = ForgeApi


class SpeechApi(LocalServer):
    """`POST /v1/audio/speech`: the answer is the file."""

    example = "speech"
    submit = "POST /v1/audio/speech"
    others = "GET /health"

    def made(self, ask):
        assert ask.headers["authorization"] == f"Bearer {KEY}"
        return Reply(samples.MP3, headers={"Content-Type": "audio/mpeg"})


class TestSpeech(_Contract):
    api = SpeechApi


class ClipApi(LocalServer):
    """`/v1/videos`: a job, and its file under another address."""

    example = "clip"
    lacks = ("moderated", "nothing")
    submit = "POST /v1/videos"
    poll = "GET /v1/videos/[^/]+"
    others = "GET /health|GET /v1/videos/[^/]+/content"

    def job_id(self, number):
        return f"video_{number}"

    def accepted(self, ask):
        return Reply({"id": ask.job, "object": "video", "status": "queued", "progress": 0})

    def waiting(self, ask):
        return Reply({"id": ask.job, "status": "in_progress", "progress": 50})

    def made(self, ask):
        return Reply({"id": ask.job, "status": "completed", "progress": 100})

    def failed(self, ask):
        return Reply({"id": ask.job, "status": "failed", "error": {"code": "x"}})

    def other(self, ask):
        if ask.path.endswith("/content"):
            return Reply(samples.MP4, headers={"Content-Type": "video/mp4"})
        return Reply({})


class TestClip(_Contract):
    api = ClipApi


class DictationApi(LocalServer):
    """`POST /inference`: a form with the buyer's file."""

    example = "dictation"
    submit = "POST /inference"
    others = "GET /health"

    def made(self, ask):
        assert b'name="file"; filename="file.wav"' in ask.body
        return Reply({"text": " The harbour was quiet.\n"})


@pytest.mark.full
class TestDictation(_Contract):
    api = DictationApi
