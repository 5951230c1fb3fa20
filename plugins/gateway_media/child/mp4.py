"""MP4: its tracks and their lengths, by the tables of a single `moov`."""

import attrs

from gateway_media.child import mp4_samples
from gateway_media.child.bounds import UnfitError
from gateway_media.child.boxes import Box, boxes, number, only, table, version
from gateway_media.child.movie import FRAGMENTED, MOST_TRACKS, Movie, Track, played_s

_KINDS = {b"vide": "video", b"soun": "sound"}
_VIDEO_CODECS = (b"avc1", b"avc3", b"hvc1", b"hev1", b"vp08", b"vp09", b"av01", b"mp4v")
_FRAGMENTS = (b"moof", b"mfra", b"sidx", b"ssix", b"styp")
_NORMAL_RATE = 1 << 16
# More units a second are unusual, and some readers take them for negative numbers.
_MOST_SCALE = 10**7
# What an edit list may leave out: the delay of an encoder.
_MOST_DELAY_S = 0.5
# A sample entry of a picture has its sides here.
_WIDTH, _HEIGHT = 24, 26


@attrs.define
class _Reader:
    data: bytes
    movie: Movie = attrs.field(factory=Movie)
    # Units a second of the movie's own times.
    scale: int = 1

    def take(self, box: Box, kept: tuple[bytes, ...]) -> list[Box]:
        """Return the boxes of a box that are known here; note the others for blanking."""
        found = list(boxes(self.data, box.body, box.end))
        self.movie.unknown += [one.place for one in found if one.name not in kept]
        return [one for one in found if one.name in kept]

    def read(self) -> None:
        whole = Box(b"", 0, 0, len(self.data))
        if self.data[4:8] != b"ftyp":
            raise UnfitError("is no MP4")
        found = self.take(whole, (b"ftyp", b"moov", b"mdat", *_FRAGMENTS))
        if any(box.name in _FRAGMENTS for box in found):
            raise UnfitError(FRAGMENTED)
        only(found, b"ftyp")
        parts = self.take(only(found, b"moov"), (b"mvhd", b"trak", b"mvex"))
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
                track.claims_s.append(self._check_edits(edits, track))
                self.movie.unknown.append(edits.place)
        self.movie.tracks.append(track)

    def _track_s(self, box: Box) -> float:
        is_long = version(self.data, box) == 1
        size = 8 if is_long else 4
        return _known(number(self.data, box, 28 if is_long else 20, size), size) / self.scale

    def _check_edits(self, edts: Box, track: Track) -> float:
        """Return the seconds that an edit list plays; note one that repeats or leaves out."""
        played = 0.0
        begun = False
        for box in boxes(self.data, edts.body, edts.end):
            is_long = version(self.data, box) == 1
            for length, begin, rate in table(self.data, box, ">QqI" if is_long else ">IiI"):
                seconds = length / self.scale
                played += seconds
                is_empty = begin < 0
                is_short = seconds and seconds < track.span_s - _MOST_DELAY_S
                is_odd = seconds > _MOST_DELAY_S if is_empty else is_short
                if begun or is_odd or rate != _NORMAL_RATE:
                    self.movie.problems.append("has an edit list, so not all of it is played once")
                begun = begun or not is_empty
        return played

    def _read_samples(self, kind: str, minf: Box, scale: int) -> Track:
        parts = self.take(minf, (b"vmhd", b"smhd", b"dinf", b"stbl"))
        self._check_references(only(parts, b"dinf"))
        stbl = self.take(only(parts, b"stbl"), mp4_samples.TABLES)
        samples = mp4_samples.read(self.data, stbl)
        played = played_s(samples.begin / scale, samples.end / scale)
        track = Track(kind=kind, samples=len(samples.places), span_s=played)
        track.claims_s.append(samples.total / scale)
        entry = self._sample_entry(only(stbl, b"stsd"))
        if kind == "video":
            track.width = number(self.data, entry, _WIDTH, 2)
            track.height = number(self.data, entry, _HEIGHT, 2)
            if entry.name not in _VIDEO_CODECS:
                self.movie.problems.append("has a video track in an unknown form")
            return track
        try:
            track.packets_s = mp4_samples.sound_seconds(self.data, entry, samples.places)
        except UnfitError as error:
            self.movie.problems.append(str(error))
        return track

    def _sample_entry(self, stsd: Box) -> Box:
        entries = list(boxes(self.data, stsd.body + 8, stsd.end))
        if not entries:
            raise UnfitError("has a track without a form")
        if len(entries) > 1:
            self.movie.problems.append("has a track in several forms")
        return entries[0]

    def _check_references(self, dinf: Box) -> None:
        """Note samples that are in another file."""
        dref = only(list(boxes(self.data, dinf.body, dinf.end)), b"dref")
        for entry in boxes(self.data, dref.body + 8, dref.end):
            if entry.name != b"url " or not number(self.data, entry, 3, 1) & 1:
                self.movie.problems.append("refers to another file")


def read(data: bytes) -> Movie:
    """Return the movie of an MP4; raises `UnfitError` if its tracks cannot be read."""
    reader = _Reader(data)
    reader.read()
    return reader.movie


def _known(duration: int, size: int) -> int:
    """Return a duration, 0 if it is left open."""
    return 0 if duration == (1 << 8 * size) - 1 else duration
