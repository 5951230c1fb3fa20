"""The sandbox image provider, as seen by a caller and an operator."""

import asyncio
import io
import os
import subprocess
import sys

import pytest
from PIL import Image, ImageChops, ImageStat

import gateway_sandbox_image
from gateway import GenerationRequest, Job, Output, Settings, Transient
from gateway_sandbox_image import ENDPOINT
from gateway_sandbox_image.renderer import Renderer, draw
from gateway_sandbox_image.studio.caption import UNTITLED, set_lines
from gateway_sandbox_image.studio.picture import draw as draw_here
from gateway_sandbox_image.studio.words import HOURS, SETTINGS

MARKER = "sandbox renderer, not an AI model"
LAKE = "a quiet lake beneath mountains at sunset"
SIZES = {
    "1:1": (1024, 1024),
    "4:3": (1152, 864),
    "3:4": (864, 1152),
    "16:9": (1280, 720),
    "9:16": (720, 1280),
}
# The painter runs at low priority, so on a busy machine it takes minutes.
PATIENCE_S = 1800.0
WEIRD = [
    "",
    "   \n\t ",
    "\x00\x01\x1b[31m\x7f\u0085",
    "<svg onload='x'>&amp;]]> \"quotes\" <!-- -->",
    "שלום עולם \u202e مرحبا بالعالم",
    "🦊🌋 👩‍🚀 🏳️‍🌈",
    "山と湖と月",
    "lone \ud800 surrogate \udfff",
    "Ζωή και θάλασσα, Озеро в горах, Łódź na jeziorze",  # noqa: RUF001 - Cyrillic by intent
    "supercalifragilistic" * 500,
    "a very long story about a mountain and the sea " * 213,
    "\u0300" * 10_000,
]


class Attempt(Job):
    task_id, attempt, endpoint = "task", 1, ENDPOINT

    def __init__(self) -> None:
        self.seen: list[float] = []

    async def progress(self, fraction: float) -> None:
        self.seen.append(fraction)


class Registry:
    def __init__(self) -> None:
        self.slugs: list[str] = []

    def __call__(self, endpoint, provider) -> None:
        self.slugs.append(endpoint.slug)


class Children:
    """The started child processes, and their environments."""

    def __init__(self) -> None:
        self.processes: list[asyncio.subprocess.Process] = []
        self.environments: list[dict[str, str]] = []
        self.born = asyncio.Event()


@pytest.fixture
def children(monkeypatch) -> Children:
    watched, start = Children(), asyncio.create_subprocess_exec

    async def watch(*command, **keywords):
        process = await start(*command, **keywords)
        watched.processes.append(process)
        watched.environments.append(keywords["env"])
        watched.born.set()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", watch)
    return watched


async def generate(prompt: str, ratio="1:1", output_format="jpg", resolution="1K") -> Output:
    request = GenerationRequest(
        prompt=prompt, aspect_ratio=ratio, output_format=output_format, resolution=resolution
    )
    result = await Renderer(timeout_s=PATIENCE_S).submit(request, Attempt())
    (output,) = result.outputs
    return output


def opened(output: Output) -> Image.Image:
    picture = Image.open(io.BytesIO(output.data))
    picture.load()
    return picture


def test_it_is_on_sale_only_where_the_operator_asked_for_it():
    registry = Registry()
    gateway_sandbox_image.register_endpoints(registry, Settings())
    assert registry.slugs == []
    gateway_sandbox_image.register_endpoints(registry, Settings(sandbox=True))
    assert registry.slugs == ["sandbox-image", "sandbox-image-edit"]


def test_the_endpoint_says_plainly_that_it_is_no_ai_model():
    assert "not an AI model" in ENDPOINT.title
    assert "not an AI model" in ENDPOINT.description
    assert ENDPOINT.price_units == 20_000


@pytest.mark.full
@pytest.mark.parametrize("ratio", ENDPOINT.aspect_ratio.values)
async def test_every_aspect_ratio_has_its_size(ratio):
    output = await generate(LAKE, ratio)
    assert (output.width, output.height) == opened(output).size == SIZES[ratio]


@pytest.mark.full
@pytest.mark.parametrize(
    ("resolution", "factor"), [("2K", 2), pytest.param("4K", 4, marks=pytest.mark.full)]
)
async def test_higher_resolutions_show_the_same_picture_larger(resolution, factor):
    large = await generate(LAKE, "16:9", "jpg", resolution)
    picture = opened(large)
    assert (large.width, large.height) == picture.size == (1280 * factor, 720 * factor)
    assert difference(draw_here(LAKE, 1280, 720, 1), picture) < 4


@pytest.mark.full
@pytest.mark.parametrize(
    ("output_format", "media_type", "decoder"),
    [
        ("png", "image/png", "PNG"),
        ("jpg", "image/jpeg", "JPEG"),
        ("webp", "image/webp", "WEBP"),
    ],
)
async def test_every_format_decodes_and_says_in_its_metadata_that_no_ai_made_it(
    output_format, media_type, decoder
):
    output = await generate("a secret harbour", output_format=output_format)
    picture = opened(output)
    assert (output.media_type, picture.format) == (media_type, decoder)
    assert picture.getexif()[0x010E] == MARKER
    packet = picture.info.get("xmp") or picture.info["XML:com.adobe.xmp"].encode()
    assert MARKER.encode() in packet
    assert b"algorithmicMedia" in packet
    assert b"secret harbour" not in output.data
    if output_format == "png":
        assert picture.text["Description"] == MARKER


@pytest.mark.full
async def test_the_same_prompt_gives_the_same_bytes():
    first, second = await asyncio.gather(
        generate(LAKE, output_format="png"), generate(LAKE, output_format="png")
    )
    assert first.data == second.data


def difference(one: Image.Image, other: Image.Image) -> float:
    """Return the difference of two blurred pictures, 0 to 255."""
    thumbnails = [picture.convert("RGB").resize((64, 64)) for picture in (one, other)]
    return sum(ImageStat.Stat(ImageChops.difference(*thumbnails)).mean) / 3


def test_different_prompts_give_clearly_different_pictures():
    prompts = (LAKE, "a city skyline at night", "dunes at noon", "saturn")
    pictures = [draw_here(prompt, 256, 256, 1) for prompt in prompts]
    pairs = [(a, b) for i, a in enumerate(pictures) for b in pictures[i + 1 :]]
    assert min(difference(a, b) for a, b in pairs) > 20


@pytest.mark.full
@pytest.mark.parametrize("place", SETTINGS)
def test_every_place_can_be_drawn_with_all_that_may_be_in_it(place):
    for words, _ in list(HOURS.values())[::4]:
        prompt = f"{SETTINGS[place].split()[0]} {words.split()[0]}, boat, cabin, man, balloon, rain"
        assert draw_here(prompt, 160, 96, 1).size == (160, 96)


@pytest.mark.parametrize("prompt", WEIRD)
def test_a_weird_prompt_gives_a_picture_all_the_same(prompt):
    assert draw_here(prompt, 160, 96, 1).size == (160, 96)


async def test_weird_prompts_reach_the_child():
    output = await generate(" ".join(WEIRD))
    assert opened(output).size == (1024, 1024)


def test_a_long_prompt_is_elided_on_its_second_line():
    first, second = set_lines("a very long story about a mountain " * 40, 800, 32)
    assert first.startswith("a very long story")
    assert second.endswith("…")


def test_a_word_longer_than_the_sheet_is_broken():
    first, second = set_lines("x" * 10_000, 800, 32)
    assert set(first) == {"x"}
    assert second.endswith("…")


def test_a_prompt_the_font_cannot_set_leaves_the_picture_untitled():
    assert set_lines("山と湖と月 2026", 800, 32) == [UNTITLED]
    assert set_lines("a fox 🦊 at dawn", 800, 32) == ["a fox at dawn"]


async def test_progress_only_grows():
    job = Attempt()
    await Renderer(timeout_s=PATIENCE_S).submit(
        GenerationRequest(prompt=LAKE, output_format="jpg"), job
    )
    assert job.seen == sorted(job.seen)
    assert all(0 < fraction < 1 for fraction in job.seen)


async def test_the_child_dies_with_a_cancelled_attempt(children):
    task = asyncio.create_task(generate(LAKE, resolution="4K"))
    await children.born.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (process,) = children.processes
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


async def test_a_child_that_takes_too_long_is_killed_and_costs_one_retry(children):
    request = GenerationRequest(prompt=LAKE, resolution="4K")
    with pytest.raises(Transient, match="took longer"):
        await Renderer(timeout_s=0.05).submit(request, Attempt())
    assert children.processes[0].returncode is not None


async def test_a_failing_child_names_its_error_and_keeps_the_prompt_to_itself():
    order = {"prompt": "secret", "width": "secret", "height": 1, "scale": 1}
    with pytest.raises(Transient) as caught:
        await draw(order, timeout_s=30)
    assert str(caught.value) == "Drawing failed: TypeError."


async def test_the_child_sees_no_secrets(children, monkeypatch):
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "0x" + "1" * 64)
    await generate(LAKE)
    assert set(children.environments[0]) <= {"LD_LIBRARY_PATH", "SYSTEMROOT"}


def test_the_gateway_itself_never_loads_an_imaging_library():
    probe = (
        "import sys; sys.path[:0] = sys.argv[1:]; import gateway_sandbox_image;"
        "print([name for name in ('PIL', 'resvg_py') if name in sys.modules])"
    )
    paths = [path for path in sys.path if path]
    done = subprocess.run(
        [sys.executable, "-c", probe, *paths], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
