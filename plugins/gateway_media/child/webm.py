"""WebM: its tracks and their lengths, by the time stamps of its blocks."""

import math
from collections.abc import Callable

import attrs

from gateway_media.child import opus, pictures
from gateway_media.child.bounds import CUT_OFF, UnfitError
from gateway_media.child.ebml import (
    VOID,
    Element,
    block_head,
    element_at,
    elements,
    number,
    real,
)
from gateway_media.child.movie import MOST_SAMPLES, MOST_TRACKS, Movie, Track, played_s

# RFC 9559, and the guidelines of WebM.
_EBML, _DOC_TYPE, _SEGMENT = 0x1A45DFA3, 0x4282, 0x18538067
_KEPT_HEAD = (_DOC_TYPE, 0x4286, 0x42F7, 0x42F2, 0x42F3, 0x4287, 0x4285)
_INFO, _TRACKS, _CLUSTER = 0x1549A966, 0x1654AE6B, 0x1F43B675
# Elements of this length of their ID are those of the top levels.
_TOP_LEVEL = 1 << 24
_SCALE, _DURATION = 0x2AD7B1, 0x4489
_KEPT_INFO = (_SCALE, _DURATION, 0x4D80, 0x5741, 0x4461)
_ENTRY, _NUMBER, _TYPE, _CODEC, _FRAME_NS = 0xAE, 0xD7, 0x83, 0x86, 0x23E383
_VIDEO, _WIDTH, _HEIGHT, _SOUND = 0xE0, 0xB0, 0xBA, 0xE1
_TRACK_SCALE, _ENCODINGS, _OPERATION = 0x23314F, 0x6D80, 0xE2
_PRIVATE, _DELAY = 0x63A2, 0x56AA
# With the UID, and the time that a decoder needs after a seek.
_KEPT_TRACK = (
    *(_NUMBER, _TYPE, _CODEC, _FRAME_NS, _VIDEO, _SOUND, _PRIVATE, _DELAY, 0x73C5, 0x56BB),
)
_KINDS = {1: "video", 2: "sound"}
_CODECS = {"video": (b"V_VP8", b"V_VP9", b"V_AV1"), "sound": (b"A_OPUS", b"A_VORBIS")}
_OPUS = b"A_OPUS"
_TIME, _SIMPLE, _GROUP, _BLOCK, _BLOCK_TIME = 0xE7, 0xA3, 0xA0, 0xA1, 0x9B
_ENCRYPTED = 0xAF
_REFERENCE, _CUT = 0xFB, 0x75A2
# With the codec's state, and transparency.
_KEPT_GROUP = (_BLOCK, _BLOCK_TIME, _REFERENCE, _CUT, 0xA4, 0x75A1)
# The known parts of inner parts: shapes, colours, light, rates, and transparency.
_KEPT_INSIDE = {
    _VIDEO: (
        *(_WIDTH, _HEIGHT, 0x9A, 0x9D, 0x53B8, 0x53C0, 0x54B0, 0x54BA, 0x54B2),
        *(0x54AA, 0x54BB, 0x54CC, 0x54DD, 0x55B0),
    ),
    _SOUND: (0xB5, 0x78B5, 0x9F, 0x6264),
    0x55B0: (*range(0x55B1, 0x55BE), 0x55D0),
    0x55D0: tuple(range(0x55D1, 0x55DB)),
    0x75A1: (0xA6,),
    0xA6: (0xA5, 0xEE),
}
_KEY, _LACING = 0x80, 0b110
_NS = 10**9
_DEFAULT_SCALE = 10**6
_MOST_BEGIN_S = 1.0
# A track may leave out this much at its begin, and at its end.
_MOST_CUT_NS = _NS // 4


@attrs.define(kw_only=True)
class _Stream:
    """One track while its blocks are read; times in the file's unit."""

    kind: str
    codec: bytes
    frame_s: float
    width: int
    height: int
    blocks: int = 0
    keys: int = 0
    # Whether a block said that a part of it is left out; only the last one may.
    is_cut: bool = False
    begin: float = math.inf
    # Of the last block, and the latest end that a block names.
    last: float = 0
    end: float = 0
    opus_samples: int = 0

    def track(self, unit_s: float) -> Track:
        """Return the track; `unit_s` is the file's unit in seconds."""
        if not self.blocks:
            return Track(kind=self.kind, samples=0, span_s=0.0)
        last_s = self.frame_s
        if not last_s and self.blocks > 1:
            # As long as the others.
            last_s = (self.last - self.begin) * unit_s / (self.blocks - 1)
        if self.codec == _OPUS:
            last_s = 0.0
        end_s = max(self.last * unit_s + last_s, self.end * unit_s)
        return Track(
            kind=self.kind,
            samples=self.blocks,
            span_s=played_s(self.begin * unit_s, end_s),
            packets_s=self.opus_samples / opus.RATE if self.codec == _OPUS else None,
            needs_decoder=self.kind == "sound" and self.codec != _OPUS,
            width=self.width,
            height=self.height,
        )


@attrs.define
class _Reader:
    data: bytes
    movie: Movie = attrs.field(factory=Movie)
    scale: int = 0
    duration: float = 0.0
    streams: dict[int, _Stream] = attrs.field(factory=dict)
    parts: int = 0

    @property
    def unit_s(self) -> float:
        return (self.scale or _DEFAULT_SCALE) / _NS

    def read(self) -> None:
        if self.data[:4] != _EBML.to_bytes(4):
            raise UnfitError("is no WebM")
        head = element_at(self.data, 0, len(self.data))
        _, body, end = head.place
        kind = self._take(body, end, _KEPT_HEAD).get(_DOC_TYPE)
        if kind is None or self._bytes(kind) != b"webm":
            raise UnfitError("is no WebM")
        segment = element_at(self.data, end, len(self.data))
        if segment.id != _SEGMENT:
            raise UnfitError("is no WebM")
        if segment.end not in (None, len(self.data)):
            self.movie.problems.append("has other data after its end")
        self._read_segment(segment.body, segment.end or len(self.data))
        self._finish()

    def _read_segment(self, at: int, end: int) -> None:
        seen: set[int] = set()
        while at < end:
            part = element_at(self.data, at, end)
            if part.id == _CLUSTER:
                if not {_INFO, _TRACKS} <= seen:
                    raise UnfitError("has blocks before its header")
                at = self._read_cluster(part.body, part.end, end)
                continue
            _, body, at = part.place
            if part.id in (_EBML, _SEGMENT) or part.id in seen:
                self.movie.problems.append("has a second header")
            elif part.id in (_INFO, _TRACKS):
                seen.add(part.id)
                (self._read_info if part.id == _INFO else self._read_tracks)(body, at)
            else:
                self._leave_out(part)

    def _leave_out(self, part: Element) -> None:
        self._count()
        if part.id != VOID or any(self.data[part.body : part.end]):
            self.movie.unknown.append(part.place)

    def _count(self) -> None:
        self.parts += 1
        if self.parts > MOST_SAMPLES:
            raise UnfitError(f"has more than {MOST_SAMPLES:,} parts")

    def _take(self, at: int, end: int, kept: tuple[int, ...]) -> dict[int, Element]:
        """Return the known elements of a range; the others are blanked."""
        found: dict[int, Element] = {}
        for part in elements(self.data, at, end):
            if part.id not in kept:
                self._leave_out(part)
            elif part.id in found:
                self.movie.problems.append("has a part twice")
            else:
                self._count()
                found[part.id] = part
                if part.id in _KEPT_INSIDE:
                    self._take(part.body, part.place[2], _KEPT_INSIDE[part.id])
        return found

    def _bytes(self, part: Element) -> bytes:
        return self.data[part.body : part.end].rstrip(b"\0")

    def _read_info(self, at: int, end: int) -> None:
        found = self._take(at, end, _KEPT_INFO)
        if _SCALE in found:
            self.scale = number(self.data, found[_SCALE])
            if not 0 < self.scale <= _NS:
                raise UnfitError("has times without a usual unit")
        if _DURATION in found:
            duration = real(self.data, found[_DURATION])
            if not math.isfinite(duration) or duration < 0:
                raise UnfitError("has a malformed number")
            self.duration = duration

    def _read_tracks(self, at: int, end: int) -> None:
        tracks = 0
        for entry in elements(self.data, at, end):
            if entry.id != _ENTRY:
                self._leave_out(entry)
                continue
            tracks += 1
            if tracks > MOST_TRACKS:
                raise UnfitError(f"has more than {MOST_TRACKS} tracks")
            self._read_entry(entry.body, entry.place[2])

    def _read_entry(self, at: int, end: int) -> None:
        odd = (_TRACK_SCALE, _ENCODINGS, _OPERATION)
        found = self._take(at, end, (*_KEPT_TRACK, *odd))
        if any(one in found for one in odd):
            self.movie.problems.append("has a track in an unknown form")
        if not {_NUMBER, _TYPE, _CODEC} <= found.keys():
            raise UnfitError("has a track without a form")
        kind = _KINDS.get(number(self.data, found[_TYPE]))
        codec, track = self._bytes(found[_CODEC]), number(self.data, found[_NUMBER])
        if kind is None or codec not in _CODECS[kind] or track in self.streams:
            self.movie.problems.append("has a track in an unknown form")
        self._check_entry(found, codec)
        sides = self._sides(found[_VIDEO]) if _VIDEO in found else (0, 0)
        frame_ns = number(self.data, found[_FRAME_NS]) if _FRAME_NS in found else 0
        self.streams[track] = _Stream(
            kind=kind or "other",
            codec=codec,
            frame_s=frame_ns / _NS,
            width=sides[0],
            height=sides[1],
        )

    def _check_entry(self, found: dict[int, Element], codec: bytes) -> None:
        if _DELAY in found and number(self.data, found[_DELAY]) > _MOST_CUT_NS:
            self.movie.problems.append("leaves out much of its begin")
        if _PRIVATE in found:
            _, body, end = found[_PRIVATE].place
            self._note(pictures.check_config, codec, self.data[body:end])

    def _note(self, check: Callable[..., None], *given: object) -> None:
        try:
            check(*given)
        except UnfitError as error:
            self.movie.problems.append(str(error))

    def _sides(self, video: Element) -> tuple[int, int]:
        found = {one.id: one for one in elements(self.data, video.body, video.place[2])}
        if not {_WIDTH, _HEIGHT} <= found.keys():
            raise UnfitError("has a video track without a size")
        return number(self.data, found[_WIDTH]), number(self.data, found[_HEIGHT])

    def _read_cluster(self, at: int, end: int | None, most: int) -> int:
        """Read a cluster, and return its end."""
        time = None
        while at < (most if end is None else end):
            part = element_at(self.data, at, most if end is None else end)
            if end is None and part.id >= _TOP_LEVEL:
                break
            _, body, at = part.place
            if part.id == _TIME and time is None:
                time = number(self.data, part)
            elif part.id == _SIMPLE:
                self._read_block(body, at, time, {})
            elif part.id == _GROUP:
                found = self._take(body, at, _KEPT_GROUP)
                if _BLOCK not in found:
                    raise UnfitError("has a malformed block")
                block = found[_BLOCK]
                self._read_block(block.body, block.place[2], time, found)
            elif part.id in (_ENCRYPTED, _TIME):
                self.movie.problems.append("has a block in an unknown form")
            else:
                self._leave_out(part)
        return at

    def _read_block(
        self, body: int, end: int, cluster: int | None, group: dict[int, Element]
    ) -> None:
        self._count()
        track, relative, flags, at = block_head(self.data, body, end)
        stream = self.streams.get(track)
        if stream is None or cluster is None or flags & _LACING:
            self.movie.problems.append("has a block in an unknown form")
            return
        if at >= end:
            raise UnfitError("has an empty block")
        time = cluster + relative
        stream.blocks += 1
        stream.keys += _REFERENCE not in group if group else bool(flags & _KEY)
        stream.begin = min(stream.begin, time)
        stream.last = max(stream.last, time)
        length = number(self.data, group[_BLOCK_TIME]) if _BLOCK_TIME in group else 0
        stream.end = max(stream.end, time + length)
        self._check_cut(stream, group)
        if stream.codec == _OPUS:
            samples = opus.packet_samples(self.data[at : min(at + 2, end)])
            stream.opus_samples += samples
            stream.end = max(stream.end, time + samples / opus.RATE / self.unit_s)
        self._note(pictures.check_single, stream.codec, self.data[at:end])

    def _check_cut(self, stream: _Stream, group: dict[int, Element]) -> None:
        """Note a cut of a block that is not the last one, and a long cut."""
        cut = number(self.data, group[_CUT], is_signed=True) if _CUT in group else 0
        if stream.is_cut or abs(cut) > _MOST_CUT_NS:
            self.movie.problems.append("leaves out parts of its blocks")
        stream.is_cut = cut != 0

    def _finish(self) -> None:
        if not self.streams:
            raise UnfitError("has no tracks")
        self.movie.promised_s = self.duration * self.unit_s
        self.movie.tracks = [one.track(self.unit_s) for one in self.streams.values()]
        if any(one.blocks and not one.keys for one in self.streams.values()):
            raise UnfitError("has no key frame")
        # One track may begin later: that time is sold.
        begins = [one.begin * self.unit_s for one in self.streams.values() if one.blocks]
        if abs(min(begins, default=0.0)) > _MOST_BEGIN_S:
            self.movie.problems.append("does not begin at its begin")


def read(data: bytes) -> Movie:
    """Return the movie of a WebM; raises `UnfitError` if its blocks cannot be read."""
    reader = _Reader(data)
    reader.read()
    if not reader.movie.tracks:
        raise UnfitError(CUT_OFF)
    return reader.movie
