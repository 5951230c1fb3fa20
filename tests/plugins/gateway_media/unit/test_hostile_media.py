"""Random changes to files: another reader finds no longer file than the one that is sold."""

import random
import struct
from collections.abc import Callable

import av.error
import pytest

from gateway.sandbox.errors import SandboxRefusal
from gateway_media.child.sound import read_sound
from gateway_media.child.video import read_video
from tests.plugins.gateway_media.made_sounds import MOST_BYTES, encoded, with_checksums
from tests.plugins.gateway_media.made_videos import (
    CLUSTER,
    ENTRY,
    INFO,
    SEGMENT,
    TRACKS,
    box,
    changed,
    element,
    movie,
    rewritten,
    seen_seconds,
    with_order,
    within_entry,
)

# A decoder may add a frame or a packet, and a player may wait for an encoder's delay.
TOLERANCE_S = 0.3
EXTREMES = (bytes(4), b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\1\0\0", b"\0\0\0\1")
FILES = {
    "sound.wav": encoded(1, "WAV", "PCM_16"),
    "sound.flac": encoded(1, "FLAC", "PCM_16"),
    "sound.mp3": encoded(1, "MP3", "MPEG_LAYER_III"),
    "sound.ogg": encoded(1, "OGG", "VORBIS"),
    "sound.opus": encoded(1, "OGG", "OPUS"),
    "sound.m4a": movie("ipod", sounds=("aac",)),
    "sound.webm": movie("webm", sounds=("libopus",)),
    "video.mp4": movie("mp4", frames=10, sounds=("aac",)),
    "video.webm": movie("webm", frames=10, sounds=("libopus",)),
}


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return a file with a few changed numbers, or with a part left out, moved or repeated."""
    made = bytearray(data)
    # Lengths are promised in the headers at the begin, or in the tables at the end.
    begin, end = chance.choice(((0, len(data)), (0, 64), (0, 400), (-1800, len(data))))
    places = range(len(data))[begin:end]
    for _ in range(chance.randint(1, 3)):
        at, size = min(chance.choice(places), len(made) - 1), chance.choice((1, 1, 2, 4, 8))
        way = chance.random()
        if way < 0.5 or (way < 0.9 and len(places) < len(data)):
            size = min(size, len(made) - at)
            value = chance.randbytes(size) if way < 0.4 else chance.choice(EXTREMES)[:size]
            made[at : at + len(value)] = value
        elif way < 0.6:
            # A number that is near to the right one.
            made[at] = (made[at] + chance.choice((-1, 1, 128))) % 256
        elif way < 0.8:
            del made[at : at + chance.randint(1, 64)]
        else:
            part = made[at : at + chance.randint(8, 2000)]
            to = chance.randrange(len(made))
            made[to:to] = part
    return with_checksums(bytes(made))


def sold(name: str, data: bytes) -> tuple[float, bytes] | None:
    """Return the sold seconds and the provider's file; None if it is refused."""
    kind, _, ending = name.partition(".")
    read = read_video if kind == "video" else read_sound
    try:
        report, plain = read(f".{ending}", data, MOST_BYTES)
    except SandboxRefusal:
        return None
    return float(report.split(b'"seconds": ')[1].rstrip(b"}").split(b",")[0]), plain or data


# Tables, forms, containers and free space, as they may stand in a wrong place.
_NAMES = b"stts stsz stsc stco ctts stss elst esds mdhd mvhd tkhd trak wave free uuid edts mdia"
_PLACES = (b"moov", b"trak", b"edts", b"mdia", b"minf", b"dinf", b"stbl")
# A minute for each of ten samples.
_MINUTES = box(b"stts", struct.pack(">II", 0, 10) + struct.pack(">II", 1, 1_000_000) * 10)
# Times, delays, speeds, blocks, groups, frames and tags.
_IDS = (0xE7, 0x56AA, 0x23314F, 0xA3, 0xA0, 0x23E383, 0x4489, 0x2AD7B1, 0x1254C367, 0xEC, 0xAE)
_MASTERS = (SEGMENT, INFO, TRACKS, ENTRY, CLUSTER, 0xE0, 0xE1, 0x1A45DFA3)


def with_box(data: bytes, chance: random.Random) -> bytes:
    """Return an MP4 with one more box, at the begin or the end of each container of a name."""
    name = chance.choice(_NAMES.split())
    at = data.find(name) - 4
    found = data[at : at + int.from_bytes(data[at : at + 4])] if at >= 0 else box(name, _MINUTES)
    more = chance.choice((found, _MINUTES, box(name, _MINUTES), box(b"free", found)))
    if chance.random() < 0.2:
        return within_entry(data, more)
    place = chance.choice(_PLACES)
    data = with_order(data, b"minf", chance.choice((b"dinf", b"stbl")))
    is_last = chance.random() < 0.7
    return changed(data, place, lambda body: body + more if is_last else more + body)


def with_element(data: bytes, chance: random.Random) -> bytes:
    """Return a WebM with one more element in each master of an ID."""
    name, value = chance.choice(_IDS), chance.choice((*EXTREMES, chance.randbytes(8)))
    block = bytes((0x81,)) + value + bytes(40)
    more = element(name, element(0xA1, block) if name == 0xA0 else block if name == 0xA3 else value)
    more = chance.choice((more, element(0xEC, more), element(0x1254C367, more)))
    is_last = chance.random() < 0.7
    place = chance.choice(_MASTERS)
    return rewritten(data, place, lambda body: body + more if is_last else more + body)


def play(name: str, change: Callable[[bytes, random.Random], bytes], seeds: range) -> int:
    """Return how many of the changed files are sold."""
    count = 0
    for seed in seeds:
        found = sold(name, change(FILES[name], random.Random(seed)))
        if found is None:
            continue
        count += 1
        seconds, plain = found
        for options in ({}, {"ignore_editlist": "1"}):
            try:
                seen = seen_seconds(plain, **options)
            except (av.error.FFmpegError, IndexError):
                continue
            assert seen <= seconds + TOLERANCE_S, f"seed {seed}"
    return count


@pytest.mark.parametrize("name", FILES)
def test_no_change_makes_a_file_cheaper_than_it_plays(name):
    assert play(name, mutated, range(30))


INSERTED = [
    ("video.mp4", with_box),
    ("sound.m4a", with_box),
    ("video.webm", with_element),
    ("sound.webm", with_element),
]


@pytest.mark.parametrize(("name", "change"), INSERTED)
def test_no_part_in_a_wrong_place_makes_a_file_cheaper_than_it_plays(name, change):
    assert play(name, change, range(40)) > 10


@pytest.mark.full
@pytest.mark.parametrize("name", FILES)
def test_no_change_of_thousands_makes_a_file_cheaper_than_it_plays(name):
    assert play(name, mutated, range(40, 2000))


@pytest.mark.full
@pytest.mark.parametrize(("name", "change"), INSERTED)
def test_no_part_of_thousands_makes_a_file_cheaper_than_it_plays(name, change):
    assert play(name, change, range(40, 1500))
