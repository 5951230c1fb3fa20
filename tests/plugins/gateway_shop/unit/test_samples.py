"""The pictures of the built samples have the stated size, and no edge of a frame."""

import pytest
from PIL import Image, ImageStat

from gateway.web.routes.files import Assets, static_folder
from gateway_shop import samples

WEB = static_folder() / "web"
# On a scale of 255. The frame's edge differed by 70 and more.
MOST_DIFFERENT = 25


def built_pictures() -> dict[str, samples.Picture]:
    made = [make(Assets(WEB)) for make in samples._BUILT.values()]
    found = [picture for one in made for picture in (one.large, one.card) if picture is not None]
    # A built name ends in a hash.
    return {picture.src.rpartition("-")[0]: picture for picture in found}


def brightness(picture: Image.Image, *box: int) -> float:
    return ImageStat.Stat(picture.crop(box)).mean[0]


@pytest.mark.parametrize("picture", built_pictures().values(), ids=built_pictures().keys())
def test_a_picture_has_its_size_and_no_edge_of_a_frame(picture):
    with Image.open(WEB / picture.src.removeprefix("/web/")) as file:
        drawn = file.convert("L")
    width, height = drawn.size
    assert (width, height) == (picture.width, picture.height)
    edges = {
        "top": [(0, 0, width, 1), (0, 3, width, 4)],
        "bottom": [(0, height - 1, width, height), (0, height - 4, width, height - 3)],
        "left": [(0, 0, 1, height), (3, 0, 4, height)],
        "right": [(width - 1, 0, width, height), (width - 4, 0, width - 3, height)],
    }
    for name, (outer, inner) in edges.items():
        difference = abs(brightness(drawn, *outer) - brightness(drawn, *inner))
        assert difference < MOST_DIFFERENT, name
