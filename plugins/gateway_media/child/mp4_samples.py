"""The samples of a track of an MP4: their places and their times."""

import itertools
from collections.abc import Iterator

import attrs

from gateway_media.child.bounds import UnfitError
from gateway_media.child.boxes import Box, number, only, table
from gateway_media.child.movie import MOST_SAMPLES

TABLES = (b"stsd", b"stts", b"ctts", b"stsc", b"stsz", b"stco", b"co64", b"stss")


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
    if not all(sizes):
        raise UnfitError("has an empty sample")
    if any(box.name == b"stss" and not table(data, box, ">I") for box in stbl):
        raise UnfitError("has no key frame")
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
