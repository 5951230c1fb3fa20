"""Providers' videos have a track of the promised length."""

import json

import pytest

from gateway.sandbox.errors import SandboxRefusal
from gateway_media import VIDEO
from gateway_media.child.video import check_video
from tests.plugins.gateway_media.made_videos import at, changed, movie, retimed

MP4 = movie("mp4", frames=10, sounds=("aac", "aac"))
WEBM = movie("webm", frames=10, sounds=("vorbis",))


@pytest.mark.parametrize(
    ("data", "media_type", "wanted"),
    [(MP4, "video/mp4", "mp4"), (MP4, "video/mp4", ""), (WEBM, "video/webm", "webm")],
)
def test_a_video_is_served_as_its_content(data, media_type, wanted):
    facts, repaired = check_video(wanted, "video/mp4", data)
    seconds = pytest.approx(1.0, abs=0.02)
    expected = {"media_type": media_type, "seconds": seconds, "width": 64, "height": 64}
    assert json.loads(facts) == expected
    assert media_type in VIDEO.media_types
    assert not repaired


@pytest.mark.parametrize(
    ("data", "wanted", "reason"),
    [
        (b"", "", "is no WebM"),
        (b'{"error": "no credit"}', "", "is no WebM"),
        (MP4, "webm", "video/webm was ordered"),
        (MP4[:-100], "", "cut off"),
        (WEBM[:-100], "", "cut off"),
        (movie("mp4", sounds=("aac",)), "", "no video track"),
        (movie("mp4", frames=10, movflags="frag_keyframe+empty_moov"), "", "fragmented"),
        (changed(MP4, b"mvhd", at(16, 60_000)), "", "promises more"),
        (retimed(WEBM, 9000.0), "", "promises more"),
    ],
)
def test_a_result_without_a_whole_video_is_refused(data, wanted, reason):
    with pytest.raises(SandboxRefusal, match=reason):
        check_video(wanted, "video/mp4", data)
