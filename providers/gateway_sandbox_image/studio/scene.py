"""A scene: all decisions made before drawing."""

import hashlib
from random import Random

import attrs

from .palette import PALETTES, Palette
from .words import HOURS, MOODS, MOTIFS, SETTINGS, named, words_of

# A palette with more stars than this has no birds.
_DUSK = 0.3
# Places for prompts that name none.
UNNAMED_SETTINGS = ("alpine", "lake", "sea", "hills", "forest")
HORIZONS = {  # share of the height above the horizon, least and most
    "space": (0.76, 0.82),
    "city": (0.7, 0.76),
    "desert": (0.52, 0.6),
    "sea": (0.58, 0.66),
    "lake": (0.56, 0.64),
    "forest": (0.5, 0.58),
    "alpine": (0.6, 0.66),
    "hills": (0.54, 0.62),
}


@attrs.frozen(kw_only=True)
class Scene:
    """One picture before drawing; lengths in pixels at the smallest resolution."""

    digest: bytes
    width: int
    height: int
    setting: str
    palette: Palette
    motifs: frozenset[str]
    horizon: float
    light: tuple[float, float]  # centre of the sun or moon

    @property
    def unit(self) -> float:
        """A thousandth of the shorter side."""
        return min(self.width, self.height) / 1000

    def dice(self, purpose: str) -> Random:
        """Return random numbers for one part, independent of the other parts."""
        return _dice(self.digest, purpose)

    @property
    def light_side(self) -> int:
        """The side of the light: -1 left, 1 right."""
        return -1 if self.light[0] < self.width / 2 else 1


def compose(prompt: str, width: int, height: int) -> Scene:
    """Choose a scene by the prompt's words; its SHA-256 decides everything else."""
    digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()
    dice = _dice(digest, "scene")
    words = words_of(prompt)
    setting = next(iter(named(words, SETTINGS)), None) or dice.choice(UNNAMED_SETTINGS)
    palette = _palette(words, setting, dice)
    horizon = height * dice.uniform(*HORIZONS[setting])
    altitude = dice.uniform(*palette.altitude)
    if setting in ("alpine", "lake"):
        altitude = max(altitude, 0.24)  # the sun has to clear the mountains
    third = dice.choice((dice.uniform(0.26, 0.4), dice.uniform(0.6, 0.74)))
    return Scene(
        digest=digest,
        width=width,
        height=height,
        setting=setting,
        palette=palette,
        motifs=frozenset(named(words, MOTIFS)) | _chances(setting, palette, dice),
        horizon=horizon,
        light=(width * third, horizon * (1 - altitude)),
    )


def _palette(words: frozenset[str], setting: str, dice: Random) -> Palette:
    """Choose by the first hour; later ones may narrow the choice."""
    hours = named(words, {hour: entry[0] for hour, entry in HOURS.items()})
    if not hours or setting == "space":
        return PALETTES[dice.choice(MOODS[setting].split())]
    allowed = HOURS[hours[0]][1].split()
    for hour in hours[1:]:
        allowed = [name for name in allowed if name in HOURS[hour][1].split()] or allowed
    return PALETTES[dice.choice(allowed)]


def _chances(setting: str, palette: Palette, dice: Random) -> frozenset[str]:
    """Add occasional motifs that the prompt does not name."""
    is_open = setting in ("alpine", "hills", "sea")
    odds = {
        "birds": 0.0 if palette.stars > _DUSK or setting == "space" else 0.55,
        "meteor": 0.4 if palette.is_night and setting != "space" else 0.0,
        "crescent": 0.35 if palette.is_night else 0.0,
        "wanderer": 0.35 if is_open else 0.0,
        "boat": 0.45 if setting in ("lake", "sea") else 0.0,
        "aurora": 1.0 if palette.name == "aurora" else 0.0,
    }
    return frozenset(motif for motif, chance in odds.items() if dice.random() < chance)


def _dice(digest: bytes, purpose: str) -> Random:
    seed = hashlib.sha256(digest + purpose.encode()).digest()
    return Random(seed)  # noqa: S311 - repeatable by intent, nothing is secret here
