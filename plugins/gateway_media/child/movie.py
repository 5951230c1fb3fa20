"""A movie by its container; nothing of it is decoded here."""

import attrs

from gateway_media.child.bounds import PRICED_FRAME_RATE, UnfitError

MOST_TRACKS = 16
# Of one track; thirty minutes of 120 frames a second have 216,000.
MOST_SAMPLES = 400_000
# The delay of an encoder. Before a later begin, players may wait.
MOST_DELAY_S = 0.25
_MOST_PADDING_S = 0.1
FRAGMENTED = "is fragmented, so its length is not known"


def played_s(begin_s: float, end_s: float) -> float:
    """Return the seconds that a track plays, with the time before a late begin."""
    return end_s if begin_s > MOST_DELAY_S else end_s - begin_s


@attrs.define(kw_only=True)
class Track:
    """One track, in seconds by its samples."""

    kind: str
    samples: int
    # From the begin of the first shown sample to the end of the last.
    span_s: float
    # The length of its decoded packets, None if only a decoder knows; and other claims.
    packets_s: float | None = None
    claims_s: list[float] = attrs.field(factory=list)
    # Until the first sample is shown.
    begin_s: float = 0.0
    # Its packets may decode to more.
    needs_decoder: bool = False
    width: int = 0
    height: int = 0

    @property
    def longest_s(self) -> float:
        """The greatest of all claims about its length."""
        frames_s = self.samples / PRICED_FRAME_RATE if self.kind == "video" else 0.0
        return max(self.span_s, self.packets_s or 0.0, frames_s, *self.claims_s)


@attrs.define(kw_only=True)
class Movie:
    """Tracks, the header's promise, and reasons why readers could see another length."""

    promised_s: float = 0.0
    tracks: list[Track] = attrs.field(factory=list)
    problems: list[str] = attrs.field(factory=list)
    # Ranges to blank before another reader gets the file: begin of the part, begin of its content,
    # and its end.
    unknown: list[tuple[int, int, int]] = attrs.field(factory=list)

    @property
    def longest_s(self) -> float:
        """The greatest of all claims about its length."""
        return max(self.promised_s, *(track.longest_s for track in self.tracks), 0.0)

    @property
    def sold_s(self) -> float:
        """The greatest of all claims, without an encoder's padding of sound.

        Sound has whole packets, so it is often a little longer than its pictures, or its promise.
        """
        longest = self.longest_s
        pictures = [track.longest_s for track in self.of_kind("video")]
        plain = max(pictures, default=self.promised_s)
        return plain if longest - plain <= _MOST_PADDING_S else longest

    @property
    def shown_s(self) -> float:
        """The length of the longest track by its samples."""
        return max((track.span_s for track in self.tracks), default=0.0)

    def of_kind(self, kind: str) -> list[Track]:
        """Return the tracks of a kind, "video" or "sound"."""
        return [track for track in self.tracks if track.kind == kind]

    def picture(self) -> Track:
        """Return the first video track; raises `UnfitError` without one."""
        found = self.of_kind("video")
        if not found:
            raise UnfitError("has no video track")
        return found[0]

    def check_sold(self, *, videos: int, least_sounds: int) -> None:
        """Raise `UnfitError` for a file whose length another reader could see differently."""
        if self.problems:
            raise UnfitError(self.problems[0])
        counts = (len(self.of_kind("video")), len(self.of_kind("sound")))
        if counts[0] != videos or not least_sounds <= counts[1] <= 1:
            raise UnfitError(f"has {counts[0]} video and {counts[1]} sound tracks")
        if not all(track.samples for track in self.tracks):
            raise UnfitError("has a track without samples")
