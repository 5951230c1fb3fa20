"""Parts that another reader could find are blanked or refused, in each container of a file."""

import json
import struct

import pytest

from gateway.sandbox.errors import SandboxRefusal
from gateway_media import samples
from gateway_media.child import video
from gateway_media.child.video import read_video
from tests.plugins.gateway_media.made_sounds import MOST_BYTES
from tests.plugins.gateway_media.made_videos import (
    CLUSTER,
    ENTRY,
    INFO,
    SEGMENT,
    TRACKS,
    added,
    at,
    box,
    changed,
    element,
    elements,
    movie,
    packets,
    repacked,
    rewritten,
    seen_seconds,
    with_order,
    within_entry,
)

MP4 = movie("mp4", frames=10)
WITH_SOUND = movie("mp4", frames=10, sounds=("aac",))
WEBM = movie("webm", frames=10, sounds=("libopus",))
VIDEO, HEAD, SIMPLE, GROUP, BLOCK = 0xE0, 0x1A45DFA3, 0xA3, 0xA0, 0xA1
# A minute for each of ten samples.
MINUTES = box(b"stts", struct.pack(">II", 0, 10) + struct.pack(">II", 1, 10_240 * 60) * 10)
OTHERS = [box(b"wave", MINUTES), box(b"trak", MINUTES), box(b"free", MINUTES), MINUTES]


def sold(data: bytes, ending: str = ".mp4") -> tuple[float, bytes]:
    """Return the sold seconds, and the file that the provider gets."""
    report, plain = read_video(ending, data, MOST_BYTES)
    return json.loads(report)["seconds"], plain or data


def refused(data: bytes, ending: str = ".mp4") -> str:
    with pytest.raises(SandboxRefusal) as error:
        read_video(ending, data, MOST_BYTES)
    return str(error.value)


@pytest.mark.parametrize("name", [b"moov", b"trak", b"edts", b"mdia", b"minf", b"dinf", b"stbl"])
@pytest.mark.parametrize("hidden", OTHERS)
def test_no_box_is_hidden_in_a_container(name, hidden):
    # The last table is the one that is read.
    data = added(with_order(MP4, b"minf", b"dinf"), name, hidden)
    if (name, hidden[4:8]) in ((b"moov", b"trak"), (b"stbl", b"stts")):
        assert "a place for one" in refused(data)
        return
    seconds, plain = sold(data)
    assert seconds == 1.0
    assert seen_seconds(plain) == 1.0
    assert plain.count(b"stts") == 1


@pytest.mark.parametrize("hidden", OTHERS)
def test_no_box_is_hidden_in_the_form_of_a_track(hidden):
    for data in (MP4, WITH_SOUND):
        seconds, plain = sold(within_entry(with_order(data, b"stbl", b"stsd"), hidden))
        assert seconds == 1.0
        assert seen_seconds(plain) < 1.1
        assert plain.count(b"stts") == data.count(b"stts")


def test_a_form_has_each_description_once_and_no_palette():
    place = MP4.index(b"esds") - 4
    esds = MP4[place : place + int.from_bytes(MP4[place : place + 4])]
    assert "2 boxes esds" in refused(within_entry(MP4, esds))
    assert "unknown form" in refused(changed(MP4, b"stsd", at(8 + 8 + 74, 8, 2)))
    # MPEG-1 in the place of MPEG-4: some readers split its packets.
    format_at = esds.index(b"\x04\x80\x80\x80") + 5
    other = esds[:format_at] + b"\x6a" + esds[format_at + 1 :]
    assert "unknown form" in refused(MP4.replace(esds, other))


def test_several_packets_of_aac_in_a_sample_are_sold():
    ten = packets(movie("ipod", sounds=("aac",), seconds=10.0), "audio")[1:-1]
    whole = [b"".join(ten[i : i + 10]) for i in range(0, len(ten), 10)]
    seconds, _ = sold(repacked(WITH_SOUND.replace(b"edts", b"skip"), b"mp4a", whole, 1024))
    assert seconds > 9.0


def test_aac_with_a_rate_of_its_own_in_each_packet_is_sold():
    plain = packets(movie("ipod", sounds=("aac",)), "audio")[1:-1]
    adts = [
        # 8 kHz in one channel.
        bytes((0xFF, 0xF1, 0x6C, 0x40 | n >> 11, n >> 3 & 0xFF, (n & 7) << 5 | 0x1F, 0xFC)) + one
        for one in plain
        for n in [len(one) + 7]
    ]
    seconds, _ = sold(repacked(WITH_SOUND.replace(b"edts", b"skip"), b"mp4a", adts, 1024))
    assert seconds > 5.5


def test_without_pyav_a_video_is_silent_or_has_opus(monkeypatch):
    monkeypatch.setattr(video, "_HAS_PLAYER", False)
    assert "has sound in AAC" in refused(WITH_SOUND)
    for data, ending in ((MP4, ".mp4"), (samples.WEBM, ".webm"), (WEBM, ".webm")):
        assert sold(data, ending)[0] == pytest.approx(1.0 if data != samples.WEBM else 0.5)


# -- WebM


@pytest.mark.parametrize("name", [HEAD, SEGMENT, INFO, TRACKS, ENTRY, VIDEO, CLUSTER])
def test_no_element_is_hidden_in_a_container(name):
    more = element(0x1254C367, b"hidden") + element(0xEC, b"hidden")
    seconds, plain = sold(rewritten(WEBM, name, lambda body: body + more), ".webm")
    assert seconds == pytest.approx(1.0)
    assert b"hidden" not in plain
    assert seen_seconds(plain) < 1.1


def test_no_element_is_hidden_in_a_group_of_a_block():
    more = element(0x1254C367, b"hidden")

    def grouped(body: bytes) -> bytes:
        return b"".join(
            element(GROUP, element(BLOCK, one) + more) if name == SIMPLE else element(name, one)
            for name, one in elements(body)
        )

    assert b"hidden" not in sold(rewritten(WEBM, CLUSTER, grouped), ".webm")[1]


# -- Pictures

# Frames of AV1 and VP9 that are shown, and hidden ones.
AV1_SHOWN, AV1_HIDDEN, AV1_BEGIN = b"\x32\x01\x10", b"\x32\x01\x00", b"\x12\0"
VP9_SHOWN, VP9_HIDDEN = b"\x82", b"\x80"


def superframe(*frames: bytes) -> bytes:
    mark = bytes((0b110 << 5 | len(frames) - 1,))
    return b"".join(frames) + mark + bytes(map(len, frames)) + mark


@pytest.mark.parametrize(
    ("codec", "frame", "is_single"),
    [
        (b"V_AV1", AV1_BEGIN + AV1_HIDDEN + AV1_SHOWN, True),
        (b"V_AV1", AV1_BEGIN + AV1_SHOWN + AV1_SHOWN, False),
        (b"V_AV1", (AV1_BEGIN + AV1_SHOWN) * 60, False),
        # Earlier frames are shown again.
        (b"V_AV1", b"\x1a\x01\x80" * 2, False),
        (b"V_VP9", superframe(VP9_HIDDEN, VP9_SHOWN), True),
        (b"V_VP9", superframe(VP9_SHOWN, VP9_SHOWN), False),
        (b"V_VP9", superframe(b"\x88", VP9_SHOWN), False),
    ],
)
def test_a_block_shows_one_picture(codec, frame, is_single):
    def replaced(body: bytes) -> bytes:
        return b"".join(
            element(name, one[:4] + frame if name == SIMPLE else one)
            for name, one in elements(body)
        )

    data = rewritten(movie("webm", frames=10), CLUSTER, replaced).replace(b"V_VP8", codec)
    reason = "cannot be decoded" if is_single else "several pictures"
    assert reason in refused(data, ".webm")


@pytest.mark.parametrize(
    ("codec", "mark"),
    [("libsvtav1", b"av01"), ("libx264", b"avc1"), ("libx265", b"hvc1"), ("mpeg4", b"mp4v")],
)
def test_a_sample_of_an_mp4_shows_one_picture(codec, mark):
    data = movie("mp4", frames=40, codec=codec).replace(b"edts", b"skip").replace(b"hev1", b"hvc1")
    shown = packets(data, "video")
    assert sold(repacked(data, mark, shown, 1024))[0] > 0
    four = [b"".join(shown[i : i + 4]) for i in range(0, len(shown), 4)]
    assert "several pictures" in refused(repacked(data, mark, four, 1024))


@pytest.mark.parametrize(
    ("form", "codec"),
    [("mp4", "libx264"), ("mp4", "libx265"), ("mp4", "libsvtav1"), ("webm", "libvpx-vp9")],
)
def test_a_video_of_a_usual_encoder_is_sold_and_stays_playable(form, codec):
    data = movie(form, frames=30, rate=30, codec=codec, sounds=("libopus",))
    seconds, plain = sold(data, f".{form}")
    assert seconds == pytest.approx(1.0, abs=0.02)
    assert seen_seconds(plain) == pytest.approx(1.0, abs=0.05)
