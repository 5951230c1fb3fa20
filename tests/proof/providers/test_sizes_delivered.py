"""The sizes that each adapter orders, or that its vendor documents, are what its offers promise."""

import itertools

import pytest

from gateway import GenerationRequest, Output, Result
from gateway.domain.acceptance import accept
from gateway_bfl.models import SIZES as BFL
from gateway_openai.sizes import SIZES as OPENAI
from gateway_sandbox_image.sizes import size_of
from tests.bundled_endpoints import bundled_endpoints

# Google's table for Gemini 3 at 1K, and OpenRouter's measurements; 2K and 4K are two and four times
# as wide and high.
GOOGLE = {
    "1:1": [(1024, 1024)],
    "4:3": [(1200, 896), (1184, 864), (1152, 896)],
    "3:4": [(896, 1200), (864, 1184), (896, 1152)],
    "16:9": [(1376, 768), (1344, 768), (1408, 768)],
    "9:16": [(768, 1376), (768, 1344), (768, 1408)],
}
TIMES = {"1K": 1, "2K": 2, "4K": 4}
# fal's named sizes, and those of the models with one size at Replicate, OpenRouter and kie.
FAL = {
    "1:1": [(1024, 1024)],
    "4:3": [(1024, 768)],
    "3:4": [(768, 1024)],
    "16:9": [(1024, 576)],
    "9:16": [(576, 1024)],
}
MEGAPIXEL = {
    "1:1": [(1024, 1024)],
    "4:3": [(1152, 896)],
    "3:4": [(896, 1152)],
    "16:9": [(1344, 768)],
    "9:16": [(768, 1344)],
}


def pixels(sides):
    width, _, height = sides.partition("x")
    return int(width), int(height)


def sizes_of(slug, ratio, resolution):
    """Return the sizes that are honest for an order."""
    if slug.startswith("bfl-flux-2"):
        return [BFL[ratio, resolution]]
    if slug.startswith("openai"):
        return [pixels(OPENAI[ratio, resolution or "1K"])]
    if slug.startswith("sandbox"):
        size = size_of(ratio, resolution or "1K")
        return [(size.width, size.height)]
    if slug.startswith("fal-flux"):
        return FAL[ratio]
    times = TIMES[resolution or "1K"]
    table = GOOGLE if "banana" in slug or "gemini" in slug else MEGAPIXEL
    return [(width * times, height * times) for width, height in table[ratio]]


PICTURES = [one for one in bundled_endpoints().values() if one.sells_pictures]


@pytest.mark.parametrize("endpoint", PICTURES, ids=[one.slug for one in PICTURES])
def test_honest_sizes_are_sold(endpoint):
    ratios = endpoint.aspect_ratio.values or ("1:1",)
    for ratio, resolution in itertools.product(ratios, endpoint.resolution.values or (None,)):
        order = GenerationRequest(prompt="a", aspect_ratio=ratio, resolution=resolution)
        for width, height in sizes_of(endpoint.slug, ratio, resolution):
            made = Output(data=b"x", media_type="image/png", width=width, height=height)
            assert accept(endpoint, order, Result(outputs=(made,)))


@pytest.mark.parametrize("endpoint", PICTURES, ids=[one.slug for one in PICTURES])
def test_the_next_smaller_resolution_is_not(endpoint):
    """Of every offer that has more than one."""
    values = endpoint.resolution.values
    for less, more in itertools.pairwise(values):
        order = GenerationRequest(prompt="a", aspect_ratio="1:1", resolution=more)
        for width, height in sizes_of(endpoint.slug, "1:1", less):
            made = Output(data=b"x", media_type="image/png", width=width, height=height)
            with pytest.raises(Exception, match="was ordered"):
                accept(endpoint, order, Result(outputs=(made,)))
