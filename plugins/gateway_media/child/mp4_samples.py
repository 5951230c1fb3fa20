"""The samples of a track of an MP4: their places, their times, and the seconds of sound."""

import itertools
from collections.abc import Iterator

import attrs

from gateway_media.child import opus
from gateway_media.child.bounds import LEAST_RATE, UnfitError, priced_seconds
from gateway_media.child.boxes import Box, boxes, number, only, table
from gateway_media.child.movie import MOST_SAMPLES

TABLES = (b"stsd", b"stts", b"ctts", b"stsc", b"stsz", b"stco", b"co64", b"stss")

# ISO/IEC 14496-1 and 14496-3.
_ES, _DECODER_CONFIG, _DECODER_INFO = 3, 4, 5
_AAC = 0x40
_LC, _SBR, _PS = 2, 5, 29
_AAC_RATES = (
    *(96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000),
    *(12_000, 11_025, 8_000, 7_350),
)
_EXPLICIT_RATE = 15
_AAC_SAMPLES = 1024
# A sample entry of a sound has its version here, and its boxes after its fixed part.
_ENTRY_VERSION, _ENTRY_BYTES = 8, 28


@attrs.frozen(kw_only=True)
class Samples:
    """Places of samples as offset and size, and times in the track's unit."""

    places: list[tuple[int, int]]
    # The begin of the first shown one, the end of the last, and the sum of all lengths.
    begin: int
    end: int
    total: int


def read(data: bytes, stbl: list[Box]) -> Samples:
    """Return the samples of a track; raises `UnfitError` if its tables do not fit together."""
    sizes = _sizes(data, only(stbl, b"stsz"))
    lengths = table(data, only(stbl, b"stts"), ">II")
    if sum(count for count, _ in lengths) != len(sizes):
        raise UnfitError("has not as many times as samples")
    total = sum(count * length for count, length in lengths)
    shifts = _shifts(data, stbl, len(sizes))
    begin, end = _span(lengths, shifts) if shifts else (0, total)
    return Samples(places=_places(data, stbl, sizes), begin=begin, end=end, total=total)


def _sizes(data: bytes, stsz: Box) -> list[int]:
    same, count = number(data, stsz, 4), number(data, stsz, 8)
    if count > MOST_SAMPLES:
        raise UnfitError(f"has more than {MOST_SAMPLES:,} samples in a track")
    return [same] * count if same else [size for (size,) in table(data, stsz, ">I", at=8)]


def _shifts(data: bytes, stbl: list[Box], count: int) -> list[tuple[int, ...]]:
    """Return rows of samples and their delay until they are shown; none without a table."""
    if not any(box.name == b"ctts" for box in stbl):
        return []
    # Only version 1 may have negative numbers, but writers use them in version 0, too.
    shifts = table(data, only(stbl, b"ctts"), ">Ii")
    if sum(number_of for number_of, _ in shifts) != count:
        raise UnfitError("has not as many delays as samples")
    return shifts


def _span(lengths: list[tuple[int, ...]], shifts: list[tuple[int, ...]]) -> tuple[int, int]:
    at, begin, end = 0, None, 0
    for length, shift in zip(_each(lengths), _each(shifts), strict=True):
        begin = at + shift if begin is None else min(begin, at + shift)
        end = max(end, at + shift + length)
        at += length
    return begin or 0, end


def _each(rows: list[tuple[int, ...]]) -> Iterator[int]:
    return itertools.chain.from_iterable(itertools.repeat(value, count) for count, value in rows)


def _places(data: bytes, stbl: list[Box], sizes: list[int]) -> list[tuple[int, int]]:
    is_long = any(box.name == b"co64" for box in stbl)
    name, form = (b"co64", ">Q") if is_long else (b"stco", ">I")
    if is_long and any(box.name == b"stco" for box in stbl):
        raise UnfitError("has two tables of places")
    chunks = [offset for (offset,) in table(data, only(stbl, name), form)]
    runs = table(data, only(stbl, b"stsc"), ">III")
    begins = [first for first, _, _ in runs]
    if begins[:1] != [1] or begins != sorted(set(begins)):
        raise UnfitError("has chunks in a wrong order")
    found: list[tuple[int, int]] = []
    for (first, each, _), after in zip(runs, [*begins[1:], len(chunks) + 1], strict=True):
        for offset in chunks[first - 1 : after - 1]:
            found += _of_chunk(offset, sizes[len(found) : len(found) + each])
    if len(found) != len(sizes):
        raise UnfitError("has not as many places as samples")
    if any(offset + size > len(data) for offset, size in found):
        raise UnfitError("is cut off: its tables promise more samples")
    return found


def _of_chunk(offset: int, sizes: list[int]) -> list[tuple[int, int]]:
    found = []
    for size in sizes:
        found.append((offset, size))
        offset += size
    return found


def sound_seconds(data: bytes, entry: Box, places: list[tuple[int, int]]) -> float:
    """Return the seconds that the packets of a sound decode to.

    Raises `UnfitError` for another form than AAC and Opus.
    """
    if number(data, entry, _ENTRY_VERSION, 2):
        raise UnfitError("has a sound track in an unknown form")
    if entry.name == b"Opus":
        samples = sum(opus.packet_samples(data[at : at + min(size, 2)]) for at, size in places)
        return samples / opus.RATE
    if entry.name != b"mp4a":
        raise UnfitError("has a sound track that is not AAC or Opus")
    esds = only(list(boxes(data, entry.body + _ENTRY_BYTES, entry.end)), b"esds")
    rate = _aac_rate(_decoder_info(data[esds.body + 4 : esds.end]))
    return priced_seconds(len(places) * _AAC_SAMPLES, rate)


def _descriptor(data: bytes, tag: int) -> bytes:
    """Return the content of the first descriptor, which has this tag."""
    size, at = 0, 1
    for at in range(1, 5):
        byte = data[at] if at < len(data) else 0
        size = size << 7 | byte & 0x7F
        if not byte & 0x80:
            break
    if data[:1] != bytes((tag,)) or at + 1 + size > len(data):
        raise UnfitError("has a sound track in an unknown form")
    return data[at + 1 : at + 1 + size]


def _decoder_info(data: bytes) -> bytes:
    es = _descriptor(data, _ES)
    if len(es) > 2 and es[2]:  # noqa: PLR2004 - flags of optional parts
        raise UnfitError("has a sound track in an unknown form")
    config = _descriptor(es[3:], _DECODER_CONFIG)
    if config[:1] != bytes((_AAC,)):
        raise UnfitError("has a sound track that is not AAC or Opus")
    return _descriptor(config[13:], _DECODER_INFO)


def _aac_rate(info: bytes) -> int:
    """Return the rate of the samples that packets are counted in."""
    bits = int.from_bytes(info[:8].ljust(8, b"\0"))
    form, index = bits >> 59, bits >> 55 & 0xF
    rate = bits >> 31 & 0xFFFFFF if index == _EXPLICIT_RATE else 0
    if index < len(_AAC_RATES):
        rate = _AAC_RATES[index]
    if form not in (_LC, _SBR, _PS) or rate < LEAST_RATE:
        raise UnfitError("has a sound track that is not plain AAC")
    return rate
