"""Providers' videos have a track of the promised length."""

import json

import pytest

from gateway.sandbox.errors import SandboxRefusal
from gateway_media import VIDEO
from gateway_media.child.video import check_video
from tests.plugins.gateway_media.made_videos import (
    CLUSTER,
    at,
    changed,
    element,
    elements,
    movie,
    retimed,
    rewritten,
)

SIMPLE = 0xA3


def emptied(body: bytes) -> bytes:
    return b"".join(
        element(one, more[:4] if one == SIMPLE else more) for one, more in elements(body)
    )


def without_keys(body: bytes) -> bytes:
    return b"".join(
        element(one, more[:3] + b"\0" + more[4:] if one == SIMPLE else more)
        for one, more in elements(body)
    )


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
        (changed(MP4, b"stsz", at(12, 0)), "", "empty sample"),
        (changed(MP4, b"mdat", lambda body: b"U" * len(body)), "", "cannot be decoded"),
        (changed(MP4, b"stsd", at(8 + 32, 20_000, 2)), "", "20,000 by 64 pixels"),
        (rewritten(WEBM, CLUSTER, emptied), "", "empty block"),
        (rewritten(WEBM, CLUSTER, without_keys), "", "no key frame"),
    ],
)
def test_a_result_without_a_whole_video_is_refused(data, wanted, reason):
    with pytest.raises(SandboxRefusal, match=reason):
        check_video(wanted, "video/mp4", data)
