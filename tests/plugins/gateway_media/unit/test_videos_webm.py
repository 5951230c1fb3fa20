"""A WebM costs the greatest of its claims, and the provider gets the parts that were read."""

import json
import struct

import pytest

from gateway.sandbox.errors import SandboxRefusal
from gateway_media.child import webm
from gateway_media.child.video import read_video
from tests.plugins.gateway_media.made_sounds import MOST_BYTES
from tests.plugins.gateway_media.made_videos import (
    CLUSTER,
    DURATION,
    ENTRY,
    INFO,
    SCALE,
    SEGMENT,
    TRACKS,
    element,
    elements,
    movie,
    retimed,
    rewritten,
    seen_seconds,
    without,
)

SECOND = movie("webm", frames=10, sounds=("libopus",))
SILENT = movie("webm", frames=10)
BODY = dict(elements(SECOND))[SEGMENT]
TAGS, SIMPLE, TIME = 0x1254C367, 0xA3, 0xE7


def sold(data: bytes) -> tuple[dict, bytes]:
    """Return the measures, and the file that the provider gets."""
    report, plain = read_video(".webm", data, MOST_BYTES)
    return json.loads(report), plain or data


def refused(data: bytes) -> str:
    with pytest.raises(SandboxRefusal) as error:
        read_video(".webm", data, MOST_BYTES)
    return str(error.value)


def added(data: bytes, name: int, more: bytes) -> bytes:
    return rewritten(data, name, lambda body: body + more)


def many_tracks(body: bytes) -> bytes:
    """Return ten thousand tracks, each with a number of its own."""
    (_, entry), *_ = elements(body)
    return b"".join(
        element(ENTRY, without(entry, 0xD7) + element(0xD7, number.to_bytes(2)))
        for number in range(10_000)
    )


def without_part(name: int) -> bytes:
    return rewritten(SECOND, SEGMENT, lambda body: without(body, name))


def lacing(body: bytes) -> bytes:
    """Return a cluster whose blocks have a flag of lacing."""
    return b"".join(
        element(name, one[:3] + bytes((one[3] | 2,)) + one[4:] if name == SIMPLE else one)
        for name, one in elements(body)
    )


def rescaled(nanoseconds: int) -> bytes:
    """Return a WebM with another unit of its times."""
    scale = element(SCALE, nanoseconds.to_bytes(4))
    return rewritten(SECOND, INFO, lambda body: without(body, SCALE) + scale)


@pytest.mark.parametrize(
    "data",
    [
        SECOND,
        SILENT,
        movie("webm", frames=10, live="1"),
        rewritten(rewritten(SECOND, CLUSTER, bytes, is_open=True), SEGMENT, bytes, is_open=True),
    ],
)
def test_a_video_is_measured_by_its_blocks_and_stays_playable(data):
    facts, plain = sold(data)
    assert facts["seconds"] == pytest.approx(1.0)
    assert (facts["width"], facts["height"]) == (64, 64)
    assert len(plain) == len(data)
    assert 0.9 < seen_seconds(plain) <= facts["seconds"] + 0.1
    assert sold(plain) == (facts, plain)


@pytest.mark.parametrize("size", [0, 1, 100, 125, 126, 127, 128, 129, 130, 5000])
def test_parts_that_are_unknown_here_are_blank_at_the_provider(size):
    more = element(TAGS, b"hidden".ljust(size, b"x"))
    data = added(added(SECOND, SEGMENT, more), CLUSTER, element(0xBF, b"hidden".ljust(size, b"x")))
    facts, plain = sold(data)
    assert b"hidden" not in plain
    assert TAGS.to_bytes(4) not in plain
    assert (facts["seconds"], len(plain)) == (sold(SECOND)[0]["seconds"], len(data))


def test_the_greatest_claim_is_sold():
    full = sold(SECOND)[0]["seconds"]
    assert sold(retimed(SECOND, 1.0))[0]["seconds"] == pytest.approx(full, abs=0.03)
    assert sold(retimed(SECOND, 7000.0))[0]["seconds"] == 7.0
    assert "1,800 seconds" in refused(retimed(SECOND, 3_600_000.0))
    # A thousandth of each time, but the packets of Opus have their own.
    assert sold(rescaled(1000))[0]["seconds"] >= 1.0
    quick = rewritten(movie("webm", frames=60, rate=60), INFO, lambda _: element(SCALE, b"\1"))
    assert sold(quick)[0]["seconds"] == 0.5


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (element(0x1A45DFA3, element(0xEC, b"") * 2001) + SECOND, "2,000 parts"),
        (added(SECOND, ENTRY, element(0xEC, b"") * 2001), "2,000 parts"),
        (SECOND + SECOND, "after its end"),
        (SECOND + element(SEGMENT, BODY), "after its end"),
        (added(SECOND, SEGMENT, element(SEGMENT, BODY)), "second header"),
        (added(SECOND, SEGMENT, element(INFO, b"")), "second header"),
        (added(SECOND, SEGMENT, element(TRACKS, b"")), "second header"),
        (rewritten(SECOND, CLUSTER, lacing), "unknown form"),
        (added(SECOND, CLUSTER, element(TIME, b"\0\0")), "unknown form"),
        (added(SECOND, CLUSTER, element(0xAF, b"\x81\0\0\0x")), "unknown form"),
        (added(SECOND, CLUSTER, element(SIMPLE, b"\x89\0\0\0x")), "unknown form"),
        # TrackTimestampScale, ContentEncodings, TrackOperation.
        (added(SECOND, ENTRY, element(0x23314F, struct.pack(">f", 60.0))), "unknown form"),
        (added(SECOND, ENTRY, element(0x6D80, b"")), "unknown form"),
        (added(SECOND, ENTRY, element(0xE2, b"")), "unknown form"),
        (added(SECOND, INFO, element(DURATION, b"\0\0\0\0")), "part twice"),
        (retimed(SECOND, float("nan")), "malformed"),
        (retimed(SECOND, float("inf")), "malformed"),
        (rescaled(2**31), "without a usual unit"),
        (rescaled(0), "without a usual unit"),
        (rewritten(SECOND, TRACKS, many_tracks), "16 tracks"),
        (without_part(INFO), "before its header"),
        (without_part(TRACKS), "before its header"),
        (movie("webm", frames=10, sounds=("libopus", "libopus")), "2 sound"),
        (movie("webm", frames=10, sounds=("vorbis",)), "not AAC or Opus"),
        (movie("webm", sounds=("libopus",)), "0 video"),
        (SECOND.replace(b"V_VP8", b"V_XXX"), "unknown form"),
        (SECOND.replace(b"webm", b"matr", 1), "no WebM"),
        (
            rewritten(
                SECOND, CLUSTER, lambda body: element(TIME, b"\x7f\xff\xff") + without(body, TIME)
            ),
            "begin",
        ),
        (b"", "no WebM"),
        (b"RIFF" + SECOND, "no WebM"),
    ],
)
def test_a_file_that_players_may_understand_differently_is_refused(data, reason):
    assert reason in refused(data)


@pytest.mark.parametrize(("track", "seconds"), [(1, 4.4), (2, 3.2)])
def test_a_track_may_begin_later_than_the_other(track, seconds):
    def later(body: bytes) -> bytes:
        made = b""
        for name, one in elements(body):
            is_late = name == SIMPLE and one[0] & 0x7F == track
            time = int.from_bytes(one[1:3]) + 1200 * is_late
            made += element(name, one[:1] + time.to_bytes(2) + one[3:] if is_late else one)
        return made

    data = rewritten(movie("webm", frames=20, sounds=("libopus",), seconds=3.2), CLUSTER, later)
    facts, plain = sold(data)
    assert facts["seconds"] == pytest.approx(seconds, abs=0.02)
    assert seen_seconds(plain) <= facts["seconds"] + 0.02


def test_a_file_of_very_many_parts_is_refused(monkeypatch):
    monkeypatch.setattr(webm, "MOST_SAMPLES", 1000)
    assert "1,000 parts" in refused(added(SECOND, SEGMENT, element(0xEC, b"") * 1000))


def test_a_file_that_is_cut_off_anywhere_is_refused():
    for end in range(0, len(SECOND), 97):
        refused(SECOND[:end])
