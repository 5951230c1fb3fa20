"""The material: pictures with known outlines, a text, and noisy speech.

A folder of pictures has photographs, and subjects: those are pictures with transparency. Without
them, scikit-image's photographs are taken if it is installed, and else pictures are drawn here.
"""

import importlib.util
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import soundfile
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter
from place import sized

Values = NDArray[Any]
_PUBLIC_DOMAIN = ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg")
_PICTURES, _SOUNDS = (".png", ".jpg", ".jpeg", ".webp"), (".wav", ".flac", ".mp3", ".ogg", ".opus")
# The picture that is enlarged, or composed.
_SIDE = sized(512, 96)
_WIDTH, _HEIGHT = sized((1024, 768), (160, 120))
# The part of a composed picture's height that its subject takes.
_SUBJECT = 0.7
# Photographs that become backgrounds.
_BACKGROUNDS = 4
_SEED = 49
_TEXT = """
The old lighthouse stood at the end of the pier, white against a gray sky. Every evening, just
after sunset, the keeper climbed its narrow steps with a flask of tea and a folded newspaper. She
knew the ships by the sound of their engines, long before she could see them.

One day in early spring, the weather service issued a warning. Strong winds would reach the coast
by midnight, and nobody should stay at sea. Most of the fishermen listened. By nightfall almost all
of the boats were safe behind the wall, but three were still somewhere beyond the northern rocks,
and their radios were silent. "Turn the lamp to its brightest setting," said her brother, who ran
the harbor office. "If they can see anything at all, they will see that."

She counted the seconds between the flashes. Shortly before dawn, the first light answered. It was
weak and yellow, and it moved slowly from left to right. Does a light move like that on a boat
without an engine? She did not think so. When the sun rose, all three of them were drifting calmly
outside the harbor, and the whole town had gathered on the pier to bring them home.
"""


@attrs.frozen
class Composed:
    """A subject with a known outline on a known background."""

    name: str
    # Of the background.
    kind: str
    picture: Image.Image
    outline: Image.Image


@attrs.frozen
class Recording:
    """Speech, and its words."""

    data: bytes
    words: str

    @property
    def samples(self) -> tuple[Values, int]:
        """The first channel, and its rate."""
        samples, rate = soundfile.read(io.BytesIO(self.data), dtype="float64", always_2d=True)
        return samples[:, 0], rate


def text() -> str:
    """Return a text without numbers or rare names, which have several right spellings."""
    whole = _TEXT.strip().replace("\n\n", "\f").replace("\n", " ").replace("\f", "\n\n")
    return sized(whole, whole.partition(".")[0] + ".")


def photographs(folder: Path | None) -> dict[str, Image.Image]:
    """Return the opaque pictures by name."""
    files = _files(folder, _PICTURES) if folder else _scikit_photographs()
    found = {file.stem: Image.open(file) for file in files}
    opaque = {
        name: image.convert("RGB")
        for name, image in found.items()
        if not image.has_transparency_data
    }
    return dict(list((opaque or _scenes()).items())[: sized(None, 1)])


def _scikit_photographs() -> list[Path]:
    spec = importlib.util.find_spec("skimage")
    if spec is None or spec.origin is None:
        return []
    data = Path(spec.origin).parent / "data"
    return [data / name for name in _PUBLIC_DOMAIN if (data / name).exists()]


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in suffixes)


def cropped(image: Image.Image) -> Image.Image:
    """Return the middle of a picture, with sides that are divisible by 8."""
    width, height = (min(side, _SIDE) // 8 * 8 for side in image.size)
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def composed(folder: Path | None) -> Iterator[Composed]:
    """Yield each subject on each background."""
    subjects = {**(_sent_subjects(folder) if folder else {}), **_turned_subjects()}
    for kind, name, background in _backgrounds(folder):
        for subject_name, subject in subjects.items():
            picture, outline = _compose(subject, background)
            yield Composed(f"{subject_name} on {name}", kind, picture, outline)


def _backgrounds(folder: Path | None) -> Iterator[tuple[str, str, Image.Image]]:
    """Yield a plain background, then photographs out of focus and in focus."""
    size = (_WIDTH, _HEIGHT)
    grey = Image.linear_gradient("L").point(lambda level: 235 - level // 8)
    yield "plain", "grey", grey.convert("RGB").resize(size)
    for name, image in list(photographs(folder).items())[:_BACKGROUNDS]:
        sharp = image.resize(size, Image.Resampling.LANCZOS)
        yield "out of focus", f"blurred {name}", sharp.filter(ImageFilter.GaussianBlur(_WIDTH / 64))
        yield "in focus", name, sharp


def _compose(subject: Image.Image, background: Image.Image) -> tuple[Image.Image, Image.Image]:
    """Return the picture and the outline of a subject before a background."""
    scale = min(_HEIGHT * _SUBJECT / subject.height, _WIDTH * _SUBJECT / subject.width)
    size = (round(subject.width * scale), round(subject.height * scale))
    small = subject.resize(size, Image.Resampling.LANCZOS)
    place = ((_WIDTH - size[0]) // 2, _HEIGHT - size[1] - _HEIGHT // 20)
    picture, outline = background.copy(), Image.new("L", background.size)
    outline.paste(small.getchannel("A"), place)
    picture.paste(small, place, small.getchannel("A"))
    return picture, outline


def _sent_subjects(folder: Path) -> dict[str, Image.Image]:
    found = {file.stem: Image.open(file) for file in _files(folder, _PICTURES)}
    return {
        name: image.convert("RGBA").crop(image.convert("RGBA").getchannel("A").getbbox())
        for name, image in found.items()
        if image.has_transparency_data
    }


def _turned_subjects() -> dict[str, Image.Image]:
    profiles: dict[str, tuple[Callable[[Values], Values], tuple[int, int, int]]] = {
        "vase": (lambda y: 0.25 + 0.2 * np.sin(1 + 5 * y), (60, 110, 170)),
        "bottle": (lambda y: np.where(y < 0.3, 0.12, 0.12 + 0.2 * (1 - np.exp(-12 * (y - 0.3)))),
                   (40, 120, 60)),
    }  # fmt: skip
    return {name: _turned(*profile) for name, profile in profiles.items()}


def _turned(radius: Callable[[Values], Values], colour: tuple[int, int, int]) -> Image.Image:
    """Return a lit solid of revolution, whose radius depends on the height from 0 to 1."""
    side = 1200
    y, x = np.mgrid[0:side, 0:side] / side
    widths = np.maximum(radius(y), 1e-6)
    across = (x - 0.5) / widths
    front = np.sqrt(np.maximum(0.0, 1 - across**2))
    light = np.maximum(0.0, 0.75 * front - 0.55 * across)
    gloss = np.maximum(0.0, light - 0.8) * 4
    lit = np.asarray(colour) * (0.25 + 0.8 * light)[..., None] + 255 * gloss[..., None]
    alpha = np.where(np.abs(across) <= 1, 255, 0)[..., None]
    pixels = np.concatenate((lit.clip(0, 255), alpha), axis=2).astype(np.uint8)
    image = Image.fromarray(pixels).reduce(2)
    return image.crop(image.getchannel("A").getbbox())


def _scenes() -> dict[str, Image.Image]:
    return {f"drawn {seed}": _scene(seed) for seed in range(3)}


def _scene(seed: int) -> Image.Image:
    """Return a picture with textures, shapes and letters."""
    chance = np.random.default_rng(seed)
    pixels = np.zeros((_HEIGHT, _WIDTH, 3))
    for octave in range(2, 8):
        small = chance.integers(0, 256, (2**octave, 2**octave, 3), dtype=np.uint8)
        large = Image.fromarray(small).resize((_WIDTH, _HEIGHT), Image.Resampling.BICUBIC)
        pixels += np.asarray(large, np.float64) / 2 ** (octave - 1)
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    _draw_shapes(ImageDraw.Draw(image), chance, image.size)
    return image


def drawings() -> dict[str, Image.Image]:
    """Return a drawing on white paper."""
    image = Image.new("RGB", (_SIDE, _SIDE), "white")
    _draw_shapes(ImageDraw.Draw(image), np.random.default_rng(_SEED), image.size)
    return {"a drawing": image}


def _draw_shapes(
    draw: ImageDraw.ImageDraw, chance: np.random.Generator, size: tuple[int, int]
) -> None:
    for _ in range(12):
        left, top = (int(chance.integers(0, side)) for side in size)
        across = int(chance.integers(20, max(21, size[1] // 3)))
        colour = tuple(int(level) for level in chance.integers(0, 256, 3))
        draw.ellipse((left, top, left + across, top + across), fill=colour, outline="black")
        draw.line((left, top, size[0] - left, size[1] - top), fill=colour, width=2)
        draw.text((left, top), "The harbor office", fill="black", font_size=20)


def recordings(folder: Path | None) -> list[Recording]:
    """Return the recordings of a folder, each with its words in a text file of its name."""
    files = _files(folder, _SOUNDS) if folder else []
    words = {file: file.with_suffix(".txt") for file in files}
    if missing := [file.name for file, own in words.items() if not own.exists()]:
        raise SystemExit(f"{folder}: no words in a .txt beside {', '.join(missing)}")
    return [Recording(file.read_bytes(), own.read_text()) for file, own in words.items()]


def noisy(samples: Values, rate: int, ratio_db: float) -> Values:
    """Return speech with pink noise and hum, which are equally strong."""
    white = np.fft.rfft(np.random.default_rng(_SEED).standard_normal(len(samples)))
    hertz = np.fft.rfftfreq(len(samples), 1 / rate)
    pink = np.fft.irfft(white / np.sqrt(np.maximum(hertz, 20)), len(samples))
    times = np.arange(len(samples)) / rate
    hum = sum(np.sin(2 * np.pi * 50 * order * times) / order for order in range(1, 8))
    noise = pink / pink.std() + hum / np.std(hum)
    level = np.sqrt((samples**2).mean() / (noise**2).mean() / 10 ** (ratio_db / 10))
    mixed: Values = samples + noise * level
    return mixed
