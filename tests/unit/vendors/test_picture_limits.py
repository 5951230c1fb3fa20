"""The size of a buyer's picture, and an adapter's refusals before the payment."""

import base64
import io

import pytest
from PIL import Image

from gateway import Attachment, InvalidInput
from gateway.vendors import PictureLimits, data_uri, picture_size, size_like

KINDS = {
    "png": ("png", {}),
    "jpeg": ("jpeg", {}),
    "progressive jpeg": ("jpeg", {"progressive": True}),
    "jpeg with its own data": ("jpeg", {"exif": b"Exif\x00\x00" + bytes(9_000), "comment": b"x"}),
    "webp": ("webp", {}),
    "lossless webp": ("webp", {"lossless": True}),
    "extended webp": ("webp", {"exif": b"Exif\x00\x00" + bytes(50)}),
}


def picture(kind="png", size=(321, 123), **options):
    stream = io.BytesIO()
    Image.new("RGB", size, "teal").save(stream, kind, **options)
    return Attachment(name=f"photo.{kind}", data=stream.getvalue())


@pytest.mark.parametrize(("kind", "options"), KINDS.values(), ids=KINDS)
def test_the_size_stands_in_the_header(kind, options):
    assert picture_size(picture(kind, **options)) == (321, 123)


def test_a_transparent_webp_has_a_size():
    stream = io.BytesIO()
    Image.new("RGBA", (70, 4_000), (1, 2, 3, 4)).save(stream, "webp")
    assert picture_size(Attachment(name="a.webp", data=stream.getvalue())) == (70, 4_000)


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
def test_a_picture_that_is_cut_off_has_a_size_or_is_refused(kind):
    whole = picture(kind).data
    for end in range(200):
        try:
            size = picture_size(Attachment(name=f"a.{kind}", data=whole[:end]))
        except InvalidInput:
            continue
        assert size == (321, 123)


JUNK = {
    "nothing": b"",
    "text": b"a letter",
    "a gif": b"GIF89a" + bytes(50),
    "a jpeg without a frame": b"\xff\xd8\xff\xe0\x00\x02" * 3,
    "a jpeg of fill bytes": b"\xff\xd8" + b"\xff" * 7_000_000,
    "a jpeg of empty segments": b"\xff\xd8" + b"\xff\xe0\x00\x02" * 1_700_000,
    "a sound": b"RIFF\x00\x00\x00\x00WAVE" + bytes(50),
    "a webp of no known kind": b"RIFF\x00\x00\x00\x00WEBPABCD" + bytes(50),
}


@pytest.mark.parametrize("data", JUNK.values(), ids=JUNK)
def test_what_is_no_picture_is_refused(data):
    with pytest.raises(InvalidInput, match="cannot be read"):
        picture_size(Attachment(name="a.jpg", data=data))


LIMITS = {
    "side": (PictureLimits(least_side=256), (256, 256), (255, 900), "256 pixels or more a side"),
    "pixels": (PictureLimits(most_pixels=2048**2), (2048, 2048), (2049, 2048), "4.19 megapixels"),
    "ratio": (PictureLimits(most_ratio=8), (800, 100), (100, 801), "more than 8 times the other"),
}


@pytest.mark.parametrize(("limits", "taken", "refused", "says"), LIMITS.values(), ids=LIMITS)
def test_a_picture_beyond_a_vendors_limit_is_refused_in_a_sentence(limits, taken, refused, says):
    limits.check(picture(size=taken))
    with pytest.raises(InvalidInput, match=says):
        limits.check(picture(size=refused))


def test_the_file_has_a_limit_too():
    photo = picture()
    PictureLimits(most_bytes=len(photo.data)).check(photo)
    with pytest.raises(InvalidInput, match="larger than 7 MB"):
        PictureLimits(most_bytes=7_000_000).check(Attachment(name="a.png", data=bytes(7_000_001)))


async def test_a_data_uri_has_the_media_type_and_every_byte():
    photo = picture("jpeg")
    head, encoded = (await data_uri(photo)).split(",")
    assert head == "data:image/jpeg;base64"
    assert base64.b64decode(encoded) == photo.data


SIZES = {
    (64, 64): (1024, 1024),
    (4000, 3000): (1168, 880),
    (100, 800): (256, 2048),
    (260, 65): (2048, 512),
}


@pytest.mark.parametrize(("sent", "made"), SIZES.items())
def test_a_result_of_a_pictures_ratio_has_a_bound_of_pixels_and_sides(sent, made):
    assert size_like(picture(size=sent), most_pixels=1024**2, longest_side=2048) == made
