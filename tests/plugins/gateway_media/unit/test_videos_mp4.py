"""An MP4 costs the greatest of its claims, and the provider gets the parts that were read."""

import io
import json
import struct

import av
import pytest

from gateway.sandbox.errors import SandboxRefusal
from gateway_media.child.video import read_video
from tests.plugins.gateway_media.made_sounds import MOST_BYTES
from tests.plugins.gateway_media.made_videos import (
    added,
    at,
    box,
    boxes,
    changed,
    movie,
    seen_seconds,
    within_entry,
)

SECOND = movie("mp4", frames=10, sounds=("aac",))
SILENT = movie("mp4", frames=10)
UNEDITED = SILENT.replace(b"edts", b"skip")
MOOV = dict(boxes(SECOND))[b"moov"]
TRAK = box(b"trak", dict(boxes(MOOV))[b"trak"])
EDIT = struct.Struct(">IiI")
NORMAL = 1 << 16


def sold(data: bytes) -> tuple[dict, bytes]:
    """Return the measures, and the file that the provider gets."""
    report, plain = read_video(".mp4", data, MOST_BYTES)
    return json.loads(report), plain or data


def refused(data: bytes) -> str:
    with pytest.raises(SandboxRefusal) as error:
        read_video(".mp4", data, MOST_BYTES)
    return str(error.value)


def edits(*rows: tuple[int, int, int], data: bytes = SILENT) -> bytes:
    table = b"".join(EDIT.pack(*row) for row in rows)
    body = box(b"elst", struct.pack(">II", 0, len(rows)) + table)
    return changed(data, b"edts", lambda _: body)


@pytest.mark.parametrize(
    "data",
    [
        SECOND,
        SILENT,
        movie("mp4", frames=10, movflags="faststart"),
        movie("mp4", frames=10, sounds=("aac:5.1",)),
    ],
)
def test_a_video_is_measured_by_its_tables_and_stays_playable(data):
    facts, plain = sold(data)
    # Sound may be a tenth longer, because it ends with a whole packet.
    assert facts["seconds"] == 1.0
    assert (facts["width"], facts["height"]) == (64, 64)
    assert len(plain) == len(data)
    assert 0.9 < seen_seconds(plain) <= facts["seconds"] + 0.1
    assert sold(plain) == (facts, plain)


def test_parts_that_are_unknown_here_are_blank_at_the_provider():
    hidden = box(b"moov", MOOV)
    data = added(SECOND, b"trak", box(b"udta", hidden)) + box(b"uuid", hidden) + box(b"free", MOOV)
    data += box(b"\0\0\0\0", hidden)
    _, plain = sold(data)
    assert plain.count(b"moov") == plain.count(b"mvhd") == 1
    assert not {b"uuid", b"udta"} & {plain[i : i + 4] for i in range(len(plain) - 3)}


def test_the_greatest_claim_is_sold():
    for name, offset, scale in ((b"mvhd", 16, 1000), (b"tkhd", 20, 1000)):
        assert sold(changed(SECOND, name, at(offset, 5 * scale)))[0]["seconds"] == 5.0
    mdhd = changed(UNEDITED, b"mdhd", lambda body: at(16, 7 * int.from_bytes(body[12:16]))(body))
    assert sold(mdhd)[0]["seconds"] == 7.0
    slow = changed(UNEDITED, b"stts", lambda body: at(12, 9 * int.from_bytes(body[12:16]))(body))
    assert sold(slow)[0]["seconds"] == 9.0
    # All pictures are late: by an encoder's delay, and by nine seconds.
    for late, seconds in ((2048, 1.0), (9 * 10_240, 10.0)):
        ctts = box(b"ctts", struct.pack(">IIII", 0, 1, 10, late))
        assert sold(added(UNEDITED, b"stbl", ctts))[0]["seconds"] == seconds
    assert "1,800 seconds" in refused(changed(SECOND, b"mvhd", at(16, 3_600_000)))


def test_sound_that_is_longer_than_its_pictures_is_sold():
    for seconds, least in ((1.05, 1.0), (1.2, 1.2), (3.0, 3.0)):
        found = sold(movie("mp4", frames=10, sounds=("aac",), seconds=seconds))[0]["seconds"]
        assert least <= found < least + 0.1


def test_lower_claims_make_no_sound_and_no_frame_cheaper():
    data = movie("mp4", frames=60, rate=60, sounds=("aac",))
    for name, offset in ((b"mvhd", 16), (b"tkhd", 20), (b"mdhd", 16), (b"stts", 12)):
        data = changed(data, name, at(offset, 1))
    assert sold(data)[0]["seconds"] >= 1.0
    quick = movie("mp4", frames=60, rate=60).replace(b"edts", b"skip")
    quick = changed(quick, b"stts", at(12, 1))
    for name, offset in ((b"mvhd", 16), (b"tkhd", 20), (b"mdhd", 16)):
        quick = changed(quick, name, at(offset, 1))
    assert sold(quick)[0]["seconds"] == 0.5


def test_a_single_edit_that_plays_all_stays_in_the_file():
    for rows, seconds in (
        (((1000, 0, NORMAL),), 1.0),
        # An open end, and a longer end.
        (((0, 0, NORMAL),), 1.0),
        (((7000, 0, NORMAL),), 7.0),
        (((100, -1, NORMAL), (1000, 0, NORMAL)), 1.1),
    ):
        data = edits(*rows)
        facts, plain = sold(data)
        assert facts["seconds"] == seconds
        assert plain.count(b"elst") == data.count(b"elst") == 1
        assert seen_seconds(plain) <= seconds


def test_an_edit_keeps_sound_and_pictures_together():
    late = edits((450, -1, NORMAL), (1000, 0, NORMAL), data=SECOND)
    with av.open(io.BytesIO(sold(late)[1])) as container:
        begins = [one.start_time * one.time_base for one in container.streams]
    assert begins == [pytest.approx(0.45, abs=0.01)] * 2
    # Pictures that are stored in another order than they are shown.
    data = movie("mp4", frames=30, rate=30, codec="libx264", sounds=("aac",))
    assert b"ctts" in data
    assert sold(data)[1].count(b"elst") == 2


def test_an_encoders_delay_of_slow_pictures_is_not_sold():
    slow = movie("mp4", frames=20, rate=2, codec="libx264")
    assert sold(slow)[0]["seconds"] == 10.0
    # Without the list, players may wait for a second.
    assert sold(slow.replace(b"edts", b"skip"))[0]["seconds"] == 11.0


@pytest.mark.parametrize(
    "rows",
    [
        [(1000, 0, NORMAL)] * 60,
        [(1000, 0, NORMAL), (1000, 0, NORMAL)],
        [(400, 0, NORMAL)],
        [(1000, 0, NORMAL // 60)],
        [(60_000, -1, NORMAL), (1000, 0, NORMAL)],
        [(100, -1, NORMAL), (100, -1, NORMAL), (1000, 0, NORMAL)],
        [(1000, -2, NORMAL)],
    ],
)
def test_an_edit_list_that_repeats_or_leaves_out_is_refused(rows):
    assert "edit list" in refused(edits(*rows))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (SECOND + box(b"moov", MOOV), "2 boxes moov"),
        (box(b"ftyp", b"isom") + SECOND, "2 boxes ftyp"),
        (SECOND + box(b"moof", b""), "fragmented"),
        (SECOND + box(b"sidx", b""), "fragmented"),
        (added(SECOND, b"moov", box(b"mvex", b"")), "fragmented"),
        (movie("mp4", frames=10, movflags="frag_keyframe+empty_moov"), "fragmented"),
        (added(SECOND, b"moov", TRAK), "2 video"),
        (movie("mp4", frames=10, sounds=("aac", "aac")), "2 sound"),
        (movie("mp4", sounds=("aac",)), "0 video"),
        (added(SECOND, b"moov", TRAK * 17), "19 tracks"),
        (added(SECOND, b"moov", TRAK * 10_000), "2,000 parts"),
        (changed(SECOND, b"mvhd", at(20, NORMAL // 2)), "another speed"),
        (changed(SECOND, b"mdhd", at(12, 0)), "without a usual unit"),
        (changed(SECOND, b"mdhd", at(12, 0xFEFD0028)), "without a usual unit"),
        (changed(SECOND, b"dref", at(16, 0)), "another file"),
        (SECOND.replace(b"mp4v", b"encv"), "unknown form"),
        (SECOND.replace(b"mp4a", b"ac-3"), "not AAC"),
        (changed(SILENT, b"stsd", lambda body: body + body[8:]), "several forms"),
        (changed(SILENT, b"stts", at(8, 9)), "as many times"),
        (changed(SILENT, b"stsz", at(8, 2**32 - 1)), "400,000 samples"),
        (changed(changed(SILENT, b"stsz", at(4, 9)), b"stsz", at(8, 90)), "as many times"),
        (changed(SILENT, b"stsz", at(4, 10**6)), "cut off"),
        (changed(SILENT, b"stco", at(8, len(SILENT))), "cut off"),
        (changed(SILENT, b"stsz", at(12, 0)), "empty sample"),
        (added(SILENT, b"stbl", box(b"stss", bytes(8))), "no key frame"),
        (changed(SILENT, b"mdat", lambda body: b"U" * len(body)), "cannot be decoded"),
        (changed(SILENT, b"stsc", at(8, 2)), "wrong order"),
        (changed(SILENT, b"stsd", at(8 + 32, 1, 2)), "1 by 64 pixels"),
        (changed(SILENT, b"stsd", at(8 + 34, 9000, 2)), "64 by 9,000 pixels"),
        (b"RIFF" + SECOND, "no MP4"),
        (b"", "no MP4"),
        (SECOND[:12], "cut off"),
    ],
)
def test_a_file_that_players_may_understand_differently_is_refused(data, reason):
    assert reason in refused(data)


def test_a_file_that_is_cut_off_anywhere_is_refused():
    for end in range(0, len(SECOND), 97):
        refused(SECOND[:end])


def test_a_few_bytes_behind_the_boxes_are_no_obstacle():
    for data in (SECOND + b"\0\0\0", SECOND + b"xyz", within_entry(SECOND, bytes(4))):
        assert sold(data)[0]["seconds"] == 1.0
    assert "cut off" in refused(added(SECOND, b"stbl", b"xyz"))


def test_the_priority_of_a_sound_is_no_obstacle():
    flags_at = SECOND.rindex(b"\x03\x80\x80\x80") + 7
    for flags, is_known in ((0x1F, True), (0x80, False), (0x40, False), (0x20, False)):
        data = SECOND[:flags_at] + bytes((flags,)) + SECOND[flags_at + 1 :]
        if is_known:
            assert sold(data)[0]["seconds"] == 1.0
        else:
            assert "unknown description" in refused(data)


def test_the_rate_of_aac_is_that_of_its_own_description():
    # At 8 kHz, a packet lasts six times as long.
    info = struct.pack(">H", 2 << 11 | 11 << 7 | 1 << 3)
    data = SECOND.replace(b"\x05\x80\x80\x80\x05\x11\x88", b"\x05\x80\x80\x80\x05" + info)
    assert data != SECOND
    assert sold(data)[0]["seconds"] >= 5.9
