"""The kinds are imported by sellers, and their functions run in the sandbox."""

import importlib.util

import pytest

import gateway_media
from gateway import Attachment, InvalidInput, SettingsError
from gateway.sandbox.kinds import FileReaders


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


@pytest.mark.parametrize("name", ["SOUND", "SOUND_FILE"])
def test_without_the_extra_a_kind_is_refused_with_the_remedy(monkeypatch, name):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        gateway_media, "find_spec", lambda one: None if one == "soundfile" else find(one)
    )
    with pytest.raises(SettingsError, match=r"install generation-gateway\[audio\]"):
        getattr(gateway_media, name)


def test_other_names_are_none():
    assert not hasattr(gateway_media, "SMELL_FILE")
