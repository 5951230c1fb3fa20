"""Results and errors of the sandbox become those of a provider."""

import pytest

from gateway import Attachment, GenerationRequest, InvalidInput, Transient
from gateway.sandbox import SandboxEnded, SandboxLost, SandboxRefusal
from gateway.sandbox.errors import End
from gateway_speech import CLEAN, SPEAK, sandboxes
from gateway_speech.provider import Cleaner, Listener, Speaker


class Sandbox:
    """Returns or raises its answer."""

    def __init__(self, answer):
        self.answer, self.calls, self.is_closed = answer, [], False

    async def call(self, *arguments):
        self.calls.append(arguments)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self):
        self.is_closed = True


class Job:
    async def progress(self, fraction, note=""):
        pass


async def test_the_ordered_format_is_made_and_named():
    sandbox = Sandbox(b"sound")
    speaker = Speaker(sandbox=sandbox)
    made = await speaker.submit(GenerationRequest(prompt="Hi.", output_format="opus"), Job())
    assert sandbox.calls == [("opus", "Hi.")]
    assert [(one.data, one.media_type) for one in made.outputs] == [(b"sound", "audio/ogg")]
    await speaker.close()
    assert sandbox.is_closed


@pytest.mark.parametrize(
    ("raised", "error", "sentence"),
    [
        (SandboxRefusal("Too long to read."), InvalidInput, "Too long to read."),
        (SandboxEnded(End.OUT_OF_TIME), InvalidInput, "too much time or memory: send a shorter"),
        (SandboxLost("It was killed."), Transient, "It was killed."),
    ],
)
async def test_a_failure_of_the_sandbox_ends_the_task_or_repeats_it(raised, error, sentence):
    speaker = Speaker(sandbox=Sandbox(raised))
    with pytest.raises(error, match=sentence):
        await speaker.submit(GenerationRequest(prompt="Hi."), Job())


@pytest.mark.parametrize("provider", [Speaker, Listener, Cleaner])
def test_as_many_orders_run_as_a_sandbox_has_children_and_the_others_wait_as_tasks(provider):
    for sandbox in (
        sandboxes.speaker(),
        sandboxes.listener("whisper-tiny.en"),
        sandboxes.cleaner(),
    ):
        assert provider.traits.max_concurrency == sandbox.limits.children


def recording(seconds, output_format):
    return GenerationRequest(
        attachment=Attachment(name="a.wav", data=b"wav"),
        output_format=output_format,
        measured={"seconds": seconds},
    )


def test_a_large_wav_is_refused_before_payment_and_a_flac_is_not():
    cleaner = Cleaner(sandbox=Sandbox(b""))
    with pytest.raises(InvalidInput, match="A WAV of 301 seconds would be too large"):
        cleaner.validate(recording(301, "wav"), CLEAN)
    cleaner.validate(recording(301, "flac"), CLEAN)
    cleaner.validate(recording(300, "wav"), CLEAN)


def test_a_text_in_another_script_is_refused_before_payment():
    with pytest.raises(InvalidInput, match="The voice reads English only"):
        Speaker(sandbox=Sandbox(b"")).validate(GenerationRequest(prompt="Привет"), SPEAK)
