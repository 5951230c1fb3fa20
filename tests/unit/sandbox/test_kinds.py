"""Files and results of plugins' kinds: the answers of their functions are checked."""

import attrs
import pytest

from gateway import (
    DATA,
    Attachment,
    ContentPolicy,
    ExecutionError,
    FileKind,
    GenerationRequest,
    InSandbox,
    InvalidInput,
    Limit,
    Output,
    Result,
    ResultKind,
    ResultUnusable,
)
from gateway.domain import Capability, Prompt
from gateway.sandbox import SandboxEnded, SandboxLost, SandboxRefusal
from gateway.sandbox.errors import End
from gateway.sandbox.kinds import FileReaders, ResultChecks
from gateway.sandbox.pictures import Pictures
from gateway_testing.facts import ENDPOINT

FILE = Attachment(name="a.wav", data=b"sound")
SOUND_FILE = FileKind(
    name="recording",
    endings=(".wav",),
    read=InSandbox(function="child:read"),
    measures=("seconds",),
    limits=(Limit(measure="seconds", least=1, most=600),),
)
SOUND = ResultKind(
    name="sound",
    media_types={"audio/wav": "wav"},
    check=InSandbox(function="child:check"),
    facts=("seconds",),
    max_bytes=5,
)
SPEECH = Capability(name="text-to-speech", prompt=Prompt(), results=(SOUND,))
ENDPOINT = attrs.evolve(ENDPOINT, capability=SPEECH.name, declared=SPEECH)
MADE = Result(outputs=(Output(data=b"sound", media_type="audio/wav"),))


class Answers:
    """Stands for the sandboxes: each call has this answer, or raises it."""

    def __init__(self, *answer):
        self.answer = answer

    def __getitem__(self, declared):
        return self

    async def call_parts(self, *arguments):
        if isinstance(self.answer[0], Exception):
            raise self.answer[0]
        return self.answer


async def read(*answer):
    return await FileReaders(Answers(*answer)).read(SOUND_FILE, FILE, 100)


async def checked(*answer, result=MADE):
    checks = ResultChecks(sandboxes=Answers(*answer))
    return await checks.check(result, GenerationRequest(prompt="hello"), ENDPOINT)


async def test_a_file_is_measured_and_may_be_replaced():
    assert await read(b'{"seconds": 2.5}', b"") == (FILE, {"seconds": 2.5})
    plain, _ = await read(b'{"seconds": 2.5}', b"plain")
    assert (plain.data, plain.sha256) == (b"plain", FILE.sha256)


@pytest.mark.parametrize("seconds", ["0.5", "601", "1e300"])
async def test_a_file_beyond_a_limit_is_refused_with_the_limits(seconds):
    with pytest.raises(InvalidInput, match="1 to 600 are allowed"):
        await read(b'{"seconds": %s}' % seconds.encode(), b"")


@pytest.mark.parametrize(
    "report",
    [
        *(b"", b"{}", b"[]", b'{"seconds": "long"}', b'{"seconds": -1}'),
        b'{"seconds": %s}' % (b"9" * 400),
        b'{"seconds": 2, "more": "%s"}' % (b"x" * 10_000),
    ],
)
async def test_a_function_that_returns_no_measure_sells_nothing(report):
    with pytest.raises(ExecutionError):
        await read(report, b"")
    with pytest.raises(ExecutionError):
        await read(b'{"seconds": NaN}', b"")


async def test_a_refusal_is_the_buyers_and_a_lost_sandbox_is_not():
    with pytest.raises(InvalidInput, match="It is silent"):
        await read(SandboxRefusal("It is silent."))
    with pytest.raises(InvalidInput, match="takes too much time"):
        await read(SandboxEnded(End.OUT_OF_TIME))
    with pytest.raises(ExecutionError):
        await read(SandboxLost())


async def test_a_result_has_the_facts_of_its_check():
    (sound,) = (await checked(b'{"media_type": "audio/wav", "seconds": 2}', b"new")).outputs
    assert (sound.data, sound.seconds, sound.media_type) == (b"new", 2, "audio/wav")


@pytest.mark.parametrize(
    "report",
    [
        b"{}",
        b'{"media_type": "text/html", "seconds": 2}',
        b'{"media_type": "audio/wav"}',
        b'{"media_type": "audio/wav", "seconds": 0}',
        b'{"media_type": "audio/wav", "seconds": NaN}',
        b'{"media_type": ["audio/wav"], "seconds": 2}',
    ],
)
async def test_a_check_without_the_declared_facts_sells_nothing(report):
    with pytest.raises(ResultUnusable):
        await checked(report, b"")


async def test_new_bytes_have_the_limits_of_old_ones(monkeypatch):
    monkeypatch.setattr("gateway.sandbox.kinds.MAX_FILE_BYTES", 3)
    with pytest.raises(InvalidInput, match="too large"):
        await read(b'{"seconds": 2}', b"long")
    large = b"x" * (SOUND.max_bytes + 1)
    with pytest.raises(ResultUnusable):
        await checked(b'{"media_type": "audio/wav", "seconds": 2}', large)


async def test_a_refused_result_is_unusable_and_none_at_all_is_a_refused_prompt():
    with pytest.raises(ResultUnusable, match="sound is not right: it is silent"):
        await checked(SandboxRefusal("it is silent"))
    with pytest.raises(SandboxLost):
        await checked(SandboxLost())
    with pytest.raises(ContentPolicy):
        await checked(b"", result=Result())


@pytest.mark.parametrize(
    "result",
    [
        Result(text="Sorry, I cannot sing."),
        Result(text="done", outputs=(Output(data=b"{}", media_type="application/json"),)),
    ],
    ids=["a text", "another file"],
)
async def test_what_comes_beside_a_sound_replaces_none(result):
    both = attrs.evolve(SPEECH, results=(SOUND, DATA))
    offer = attrs.evolve(ENDPOINT, declared=both)
    checks = ResultChecks(sandboxes=Answers(b"{}", b""))
    with pytest.raises(ContentPolicy):
        await checks.check(result, GenerationRequest(prompt="hello"), offer)


async def test_an_output_of_another_type_is_checked_as_the_declared_kind():
    other = Result(outputs=(Output(data=b"<html>", media_type="text/html"),))
    with pytest.raises(ResultUnusable):
        await checked(SandboxRefusal("it is no sound"), result=other)


@attrs.define
class Counting(Answers):
    """Counts the calls, and answers each with `size` bytes."""

    size: int
    calls: int = 0

    async def call_parts(self, *arguments):
        self.calls += 1
        return b'{"media_type": "audio/wav", "seconds": 2}', bytes(self.size)


def songs(count, size=5):
    return Result(outputs=(Output(data=bytes(size), media_type="audio/wav"),) * count)


@pytest.mark.parametrize(
    ("result", "most"),
    [
        (songs(17), 10**6),
        (songs(3), 14),
        # The second is larger than its kind allows.
        (Result(outputs=(*songs(1).outputs, *songs(1, size=6).outputs)), 10**6),
        (Result(outputs=(*songs(1).outputs, *songs(1, size=0).outputs)), 10**6),
        # A file of no known kind counts, too.
        (Result(outputs=(*songs(1).outputs, Output(data=bytes(20), media_type="a/b"))), 14),
    ],
)
async def test_nothing_is_decoded_of_a_result_that_is_too_large(monkeypatch, result, most):
    monkeypatch.setattr("gateway.sandbox.pictures.MAX_RESULT_BYTES", most)
    boxes = Counting(size=5)
    with pytest.raises(ResultUnusable):
        await ResultChecks(sandboxes=boxes).check(result, GenerationRequest(prompt="a"), ENDPOINT)
    assert boxes.calls == 0


async def test_the_total_counts_the_bytes_that_the_checks_return(monkeypatch):
    monkeypatch.setattr("gateway.sandbox.pictures.MAX_RESULT_BYTES", 12)
    boxes = Counting(size=5)
    request = GenerationRequest(prompt="a")
    with pytest.raises(ResultUnusable, match="larger than what is sold"):
        await ResultChecks(sandboxes=boxes).check(songs(4, 1), request, ENDPOINT)
    # The third exceeds it, and the fourth is not decoded.
    assert boxes.calls == 3


async def test_pictures_together_are_bounded_before_they_are_decoded(monkeypatch):
    monkeypatch.setattr("gateway.sandbox.pictures.MAX_RESULT_BYTES", 12)
    boxes = Counting(size=5)
    many = Result(outputs=(Output(data=bytes(5), media_type="image/png"),) * 3)
    with pytest.raises(ResultUnusable, match="larger than what is sold"):
        await Pictures(sandbox=boxes).check(many, "png")
    assert boxes.calls == 0
