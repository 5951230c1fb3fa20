"""Random changes to files: another reader finds no longer file than the one that is sold."""

import random

import av.error
import pytest

from gateway.sandbox.errors import SandboxRefusal
from gateway_media.child.sound import read_sound
from gateway_media.child.video import read_video
from tests.plugins.gateway_media.made_sounds import MOST_BYTES, encoded, with_checksums
from tests.plugins.gateway_media.made_videos import movie, seen_seconds

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


def play_mutations(name: str, seeds: range) -> int:
    """Return how many of the changed files are sold."""
    count = 0
    for seed in seeds:
        found = sold(name, mutated(FILES[name], random.Random(seed)))
        if found is None:
            continue
        count += 1
        seconds, plain = found
        try:
            seen = seen_seconds(plain)
        except (av.error.FFmpegError, IndexError):
            continue
        assert seen <= seconds + TOLERANCE_S, f"seed {seed}"
    return count


@pytest.mark.parametrize("name", FILES)
def test_no_change_makes_a_file_cheaper_than_it_plays(name):
    assert play_mutations(name, range(40))


@pytest.mark.full
@pytest.mark.parametrize("name", FILES)
def test_no_change_of_thousands_makes_a_file_cheaper_than_it_plays(name):
    assert play_mutations(name, range(40, 2000))
