"""The kinds are imported by sellers, and their functions run in the sandbox."""

import importlib.util

import attrs
import pytest

import gateway_media
from gateway import Attachment, Capability, InvalidInput, Prompt, SettingsError
from gateway.plugins.registration import RegistrationMistake, endpoint_offer
from gateway.sandbox.kinds import FileReaders
from gateway_media import capabilities
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider
from tests.third_party_plugins import SELLS
from tests.unit.plugins.plugin_lists import listed


@pytest.fixture
async def readers():
    readers = FileReaders()
    yield readers
    readers.close()


@pytest.mark.parametrize("kind", [gateway_media.SOUND_FILE, gateway_media.VIDEO_FILE])
async def test_every_sample_is_measured_in_the_sandbox(readers, kind):
    for ending, data in kind.samples.items():
        attachment = Attachment(name=f"a{ending}", data=data)
        plain, measured = await readers.read(kind, attachment, 7_500_000)
        assert measured["seconds"] > 0.4
        assert plain.data == data
    with pytest.raises(InvalidInput, match=f"The {kind.name} is "):
        await readers.read(kind, Attachment(name=f"a{kind.endings[0]}", data=b"hello"), 7_500_000)


@pytest.fixture
def without_extra(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        gateway_media, "find_spec", lambda one: None if one == "soundfile" else find(one)
    )


@pytest.mark.parametrize("name", ["SOUND", "SOUND_FILE"])
def test_without_the_extra_a_kind_is_refused_with_the_remedy(without_extra, name):
    with pytest.raises(SettingsError, match=r"install generation-gateway\[audio\]"):
        getattr(gateway_media, name)


def test_without_the_extra_a_seller_is_left_out_and_listed_with_the_remedy(
    without_extra, install, command
):
    install("from gateway_media import SOUND_FILE\n" + SELLS)
    note = listed(command, "--no-health")["note"]
    assert "install generation-gateway[audio]" in note
    assert "SettingsError" not in note


def test_with_the_extra_a_seller_is_on_sale(install, command):
    install("from gateway_media import SOUND_FILE, VIDEO\n" + SELLS)
    assert listed(command, "--no-health")["endpoints"] == "acme-picture"


def test_without_pyav_a_packed_sound_is_refused_at_the_registration(monkeypatch):
    find = importlib.util.find_spec
    spec = find("gateway_media.kinds")
    kinds = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(importlib.util, "find_spec", lambda one: None if one == "av" else find(one))
    spec.loader.exec_module(kinds)
    assert "sound track of Opus" in kinds.VIDEO_FILE.note
    assert "sound track of AAC or Opus" in gateway_media.VIDEO_FILE.note
    capability = Capability(
        name="noise-removal", prompt=Prompt(use="absent"), files=(kinds.SOUND_FILE,)
    )
    endpoint = attrs.evolve(
        ENDPOINT,
        capability=capability.name,
        required_fields=("fileBase64", "fileName"),
        file_extensions=(".wav", ".m4a"),
    )
    with pytest.raises(RegistrationMistake, match=r"any of .wav, .mp3, .flac, .ogg, .opus$"):
        endpoint_offer(endpoint, ScriptedProvider(), {capability.name: capability})


def test_other_names_are_none():
    assert not hasattr(gateway_media, "SMELL_FILE")


@pytest.mark.parametrize("has_decoder", [True, False])
def test_the_capabilities_of_sound_are_declared_with_the_decoder(monkeypatch, has_decoder):
    monkeypatch.setattr(capabilities, "find_spec", lambda _: has_decoder or None)
    declared: list[Capability] = []
    gateway_media.register_capabilities(declared.append)
    names = {one.name for one in declared}
    assert {"background-removal", "image-upscaling", "text-to-video"} <= names
    assert ("text-to-speech" in names) is has_decoder
