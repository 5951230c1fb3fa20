"""MP4: its tracks and their lengths, by the tables of a single `moov`."""

import attrs

from gateway_media.child import mp4_entries, mp4_samples, mp4_sound, pictures
from gateway_media.child.bounds import UnfitError
from gateway_media.child.boxes import Box, boxes, number, only, table, version
from gateway_media.child.movie import FRAGMENTED, MOST_DELAY_S, MOST_TRACKS, Movie, Track, played_s

_KINDS = {b"vide": "video", b"soun": "sound"}
_FRAGMENTS = (b"moof", b"mfra", b"sidx", b"ssix", b"styp")
_NORMAL_RATE = 1 << 16
# More units a second are unusual, and some readers take them for negative numbers.
_MOST_SCALE = 10**7
# An edit list may leave out the delay of an encoder.
_MOST_DELAY_S = 0.5
# At few frames a second, its delay is longer.
_MOST_DELAY_FRAMES = 2
_TICK_S = 0.001
# A list begins with a version, flags, and a number of entries.
_LIST_HEAD_BYTES = 8


@attrs.define
class _Reader:
    data: bytes
    movie: Movie = attrs.field(factory=Movie)
    # Units a second of the movie's own times.
    scale: int = 1

    def take(
        self, box: Box, once: tuple[bytes, ...], *, often: tuple[bytes, ...] = (), head: int = 0
    ) -> list[Box]:
        """Return the boxes of a box, behind its head, that are known here.

        The others are noted for blanking: some readers find a table in any place.
        """
        found = list(boxes(self.data, box.body + head, box.end))
        known = [one for one in found if one.name in once or one.name in often]
        self.movie.unknown += [one.place for one in found if one not in known]
        for name in once:
            count = sum(one.name == name for one in known)
            if count > 1:
                self.movie.problems.append(f"has {count} boxes {name.decode()} in a place for one")
        return known

    def read(self) -> None:
        whole = Box(b"", 0, 0, len(self.data))
        if self.data[4:8] != b"ftyp":
            raise UnfitError("is no MP4")
        found = self.take(whole, (b"ftyp", b"moov"), often=(b"mdat", *_FRAGMENTS))
        if any(box.name in _FRAGMENTS for box in found):
            raise UnfitError(FRAGMENTED)
        only(found, b"ftyp")
        parts = self.take(only(found, b"moov"), (b"mvhd", b"mvex"), often=(b"trak",))
        if any(box.name == b"mvex" for box in parts):
            raise UnfitError(FRAGMENTED)
        self.movie.promised_s, self.scale = self._times(only(parts, b"mvhd"), is_movie=True)
        tracks = [box for box in parts if box.name == b"trak"]
        if len(tracks) > MOST_TRACKS:
            raise UnfitError(f"has {len(tracks):,} tracks; {MOST_TRACKS} are allowed")
        for box in tracks:
            self._read_track(box)

    def _times(self, box: Box, *, is_movie: bool = False) -> tuple[float, int]:
        """Return the duration in seconds, and the units a second."""
        is_long = version(self.data, box) == 1
        scale = number(self.data, box, 20 if is_long else 12)
        if not 0 < scale <= _MOST_SCALE:
            raise UnfitError("has times without a usual unit")
        size = 8 if is_long else 4
        duration = number(self.data, box, 24 if is_long else 16, size)
        if is_movie and number(self.data, box, 32 if is_long else 20) != _NORMAL_RATE:
            self.movie.problems.append("is played at another speed")
        return _known(duration, size) / scale, scale

    def _read_track(self, box: Box) -> None:
        before = len(self.movie.unknown)
        parts = self.take(box, (b"tkhd", b"mdia", b"edts"))
        media = self.take(only(parts, b"mdia"), (b"mdhd", b"hdlr", b"minf"))
        name = number(self.data, only(media, b"hdlr"), 8)
        kind = _KINDS.get(name.to_bytes(4))
        if kind is None:
            # Subtitles, time codes and the like.
            self.movie.unknown[before:] = [box.place]
            return
        claim, scale = self._times(only(media, b"mdhd"))
        track = self._read_samples(kind, only(media, b"minf"), scale)
        track.claims_s += [claim, self._track_s(only(parts, b"tkhd"))]
        for edits in parts:
            if edits.name == b"edts":
                track.claims_s.append(self._check_edits(edits, track, scale))
        self.movie.tracks.append(track)

    def _track_s(self, box: Box) -> float:
        is_long = version(self.data, box) == 1
        size = 8 if is_long else 4
        return _known(number(self.data, box, 28 if is_long else 20, size), size) / self.scale

    def _check_edits(self, edts: Box, track: Track, scale: int) -> float:
        """Return the seconds that an edit list plays; note one that repeats or leaves out.

        The list stays in the file, because it keeps sound and pictures together.
        """
        elst = self.take(edts, (b"elst",))
        if not elst:
            return 0.0
        is_long = version(self.data, elst[0]) == 1
        rows = table(self.data, elst[0], ">QqI" if is_long else ">IiI")
        lengths = [length / self.scale for length, _, _ in rows]
        # A delay, and all of the track.
        delay, shown = (lengths[:1], rows[1:]) if rows and rows[0][1] == -1 else ([], rows)
        _leave_out_delay(track, [begin / scale for _, begin, _ in shown])
        is_odd = len(shown) > 1 or any(begin < 0 for _, begin, _ in shown)
        is_cut = any(0 < one < track.span_s - _MOST_DELAY_S for one in lengths[len(delay) :])
        is_other_rate = any(rate != _NORMAL_RATE for _, _, rate in rows)
        if is_odd or is_cut or is_other_rate or sum(delay) > _MOST_DELAY_S:
            self.movie.problems.append("has an edit list, so not all of it is played once")
        # An open end plays all of it.
        return sum(delay) + max(track.span_s, *lengths[len(delay) :], 0.0)

    def _read_samples(self, kind: str, minf: Box, scale: int) -> Track:
        parts = self.take(minf, (b"vmhd", b"smhd", b"dinf", b"stbl"))
        self._check_references(only(parts, b"dinf"))
        stbl = self.take(only(parts, b"stbl"), mp4_samples.TABLES)
        samples = mp4_samples.read(self.data, stbl)
        played = played_s(samples.begin / scale, samples.end / scale)
        track = Track(
            kind=kind, samples=len(samples.places), span_s=played, begin_s=samples.begin / scale
        )
        track.claims_s.append(samples.total / scale)
        entry = self._sample_entry(only(stbl, b"stsd"))
        if kind == "video":
            track.width, track.height = mp4_entries.sides(self.data, entry)
        try:
            parts = self.take(
                entry, mp4_entries.known(entry), head=mp4_entries.head_bytes(self.data, entry, kind)
            )
            if kind == "video":
                self._check_pictures(entry, parts, samples.places)
            else:
                mp4_sound.measure(self.data, entry, parts, samples.places, track)
        except UnfitError as error:
            self.movie.problems.append(str(error))
        return track

    def _check_pictures(self, entry: Box, parts: list[Box], places: list[tuple[int, int]]) -> None:
        own = mp4_entries.check_video(self.data, entry, parts)
        config = self.data[own.body : own.end]
        pictures.check_config(entry.name, config)
        for at, size in places:
            pictures.check_single(entry.name, self.data[at : at + size], config)

    def _sample_entry(self, stsd: Box) -> Box:
        entries = list(boxes(self.data, stsd.body + _LIST_HEAD_BYTES, stsd.end))
        if not entries:
            raise UnfitError("has a track without a form")
        if len(entries) > 1:
            self.movie.problems.append("has a track in several forms")
        return entries[0]

    def _check_references(self, dinf: Box) -> None:
        """Note samples that are in another file."""
        dref = only(self.take(dinf, (b"dref",)), b"dref")
        for entry in boxes(self.data, dref.body + _LIST_HEAD_BYTES, dref.end):
            if entry.name != b"url " or not number(self.data, entry, 3, 1) & 1:
                self.movie.problems.append("refers to another file")


def read(data: bytes) -> Movie:
    """Return the movie of an MP4; raises `UnfitError` if its tracks cannot be read."""
    reader = _Reader(data)
    reader.read()
    return reader.movie


def _leave_out_delay(track: Track, begins_s: list[float]) -> None:
    """Measure from the begin of an edit, if it leaves out an encoder's delay."""
    is_delay = MOST_DELAY_S < track.begin_s <= _MOST_DELAY_FRAMES * track.span_s / track.samples
    if is_delay and all(abs(begin - track.begin_s) < _TICK_S for begin in begins_s[:1] or [0.0]):
        track.span_s -= track.begin_s


def _known(duration: int, size: int) -> int:
    """Return a duration, 0 if it is left open."""
    return 0 if duration == (1 << 8 * size) - 1 else duration
