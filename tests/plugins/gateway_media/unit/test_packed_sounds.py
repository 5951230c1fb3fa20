"""Sound in an M4A or a WebM is decoded behind the checks of its container."""

import json
import struct

import pytest

from gateway.sandbox.errors import SandboxRefusal
from gateway_media.child.sound import read_sound
from tests.plugins.gateway_media.made_sounds import MOST_BYTES
from tests.plugins.gateway_media.made_videos import (
    CLUSTER,
    ENTRY,
    INFO,
    added,
    at,
    box,
    boxes,
    changed,
    element,
    elements,
    movie,
    rewritten,
    seen_seconds,
    without,
)

M4A = movie("ipod", sounds=("aac",))
OPUS, VORBIS = movie("webm", sounds=("libopus",)), movie("webm", sounds=("vorbis",))
TRAK = box(b"trak", dict(boxes(dict(boxes(M4A))[b"moov"]))[b"trak"])
REPEATED = struct.pack(">II", 0, 2) + struct.pack(">IiI", 1000, 0, 1 << 16) * 2


def sold(ending: str, data: bytes) -> tuple[float, bytes]:
    """Return the measured seconds, and the file that the provider gets."""
    report, plain = read_sound(ending, data, MOST_BYTES)
    return json.loads(report)["seconds"], plain or data


def refused(ending: str, data: bytes) -> str:
    with pytest.raises(SandboxRefusal) as error:
        read_sound(ending, data, MOST_BYTES)
    return str(error.value)


@pytest.mark.parametrize(("ending", "data"), [(".m4a", M4A), (".webm", OPUS), (".webm", VORBIS)])
def test_a_sound_is_decoded_and_stays_playable(ending, data):
    seconds, plain = sold(ending, data)
    # An encoder's padding is not sold.
    assert 1.0 <= seconds < 1.03
    assert 0.95 < seen_seconds(plain) <= seconds + 0.1
    assert len(plain) == len(data)


def with_delay(nanoseconds: int) -> bytes:
    """Return a WebM of three seconds that leaves out a part of its begin."""
    delay = element(0x56AA, nanoseconds.to_bytes(8))
    return rewritten(
        movie("webm", sounds=("vorbis",), seconds=3.0),
        ENTRY,
        lambda body: without(body, 0x56AA) + delay,
    )


def cut(nanoseconds: int, *, only_last: bool = True) -> bytes:
    """Return a WebM whose blocks leave out a part of their end."""

    def grouped(body: bytes) -> bytes:
        found = elements(body)
        made = b""
        for place, (name, one) in enumerate(found):
            block = one if name == 0xA3 else dict(elements(one)).get(0xA1) if name == 0xA0 else None
            is_cut = place == len(found) - 1 or not only_last
            more = element(0x75A2, nanoseconds.to_bytes(8)) if is_cut else b""
            made += element(0xA0, element(0xA1, block) + more) if block else element(name, one)
        return made

    return rewritten(VORBIS, CLUSTER, grouped)


def test_a_begin_and_an_end_that_are_left_out_are_sold():
    assert sold(".webm", with_delay(200_000_000))[0] >= 3.0
    assert sold(".webm", cut(200_000_000))[0] >= 1.0
    assert "much of its begin" in refused(".webm", with_delay(2 * 10**9))
    assert "leaves out parts" in refused(".webm", cut(10**9))
    assert "leaves out parts" in refused(".webm", cut(10_000_000, only_last=False))


def test_lower_claims_make_no_sound_cheaper():
    data = M4A
    for name, offset in ((b"mvhd", 16), (b"tkhd", 20), (b"mdhd", 16), (b"stts", 12)):
        data = changed(data, name, at(offset, 1))
    assert sold(".m4a", data)[0] >= 1.0
    quick = rewritten(VORBIS, INFO, lambda _: element(0x2AD7B1, b"\1"))
    assert sold(".webm", quick)[0] >= 0.95


@pytest.mark.parametrize(
    ("ending", "data", "reason"),
    [
        (".m4a", changed(M4A, b"edts", lambda _: box(b"elst", REPEATED)), "edit list"),
        (".m4a", added(M4A, b"moov", TRAK), "2 sound"),
        (".m4a", movie("mp4", frames=10, sounds=("aac",)), "1 video"),
        (".m4a", M4A + box(b"moof", b""), "fragmented"),
        (".m4a", changed(M4A, b"mvhd", at(16, 3_600_000)), "1,800 seconds"),
        (".m4a", changed(M4A, b"mdat", lambda body: bytes((0x55,)) * len(body)), "decoded"),
        (".m4a", M4A[:-50], "cut off"),
        (".m4a", OPUS, "no MP4"),
        (".webm", M4A, "no WebM"),
        (".webm", OPUS + OPUS, "after its end"),
        (".webm", movie("webm", sounds=("libopus", "vorbis")), "2 sound"),
        (".webm", movie("webm", frames=10, sounds=("libopus",)), "1 video"),
        (".webm", VORBIS[:-50], "cut off"),
    ],
)
def test_a_file_that_players_may_understand_differently_is_refused(ending, data, reason):
    assert reason in refused(ending, data)
