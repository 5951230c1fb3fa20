"""The renderer's vocabulary: places, hours and motifs."""

import re
from collections.abc import Mapping

# Words up to this length have no plural: 'gas' is not the plural of 'ga'.
_NO_PLURAL = 3

# The first place in the prompt wins.
SETTINGS: Mapping[str, str] = {
    "space": "space planet galaxy nebula cosmos cosmic astronaut cosmonaut spaceship spacecraft"
    " rocket orbit alien mars saturn jupiter asteroid comet universe interstellar satellite",
    "city": "city skyline town street urban downtown skyscraper cyberpunk tokyo paris london"
    " berlin metropolis rooftop chicago york",
    "sea": "sea ocean beach coast coastal island surf harbour harbor ship sail sailing sailboat"
    " lighthouse pirate whale dolphin seaside tide wave",
    "desert": "desert dune sahara camel cactus oasis canyon mesa arizona egypt pyramid bedouin",
    "lake": "lake river pond reflection fjord loch lagoon swan canoe boat water",
    "alpine": "mountain alps alpine peak summit glacier himalaya everest ski climber"
    " snowboard volcano cabin chalet dragon eagle",
    "forest": "forest wood woodland tree pine jungle grove deer fox bear wolf owl spruce fir",
    "hills": "hill meadow field countryside farm village garden flower pasture vineyard valley"
    " sheep horse cow balloon picnic grass tuscany shire windmill",
}

# Words for hours, with the palettes that they allow. The first hour in the prompt wins.
HOURS: Mapping[str, tuple[str, str]] = {
    "aurora": ("aurora borealis", "aurora"),
    "neon": ("neon cyberpunk vaporwave synthwave retrowave", "neon"),
    "storm": ("storm stormy thunder thunderstorm lightning tempest", "storm"),
    "sunset": ("sunset sundown", "ember crimson golden canyon"),
    "dusk": ("dusk twilight evening nightfall", "violet ember"),
    "dawn": ("dawn sunrise morning daybreak", "rose golden"),
    "night": (
        "night midnight star starry moon moonlight moonlit moonrise nocturne dark",
        "midnight jade",
    ),
    "mist": ("mist misty fog foggy haze hazy cloudy overcast", "mist"),
    "rain": ("rain rainy monsoon raining", "storm mist"),
    "winter": ("winter snow snowy ice icy frozen arctic christmas frost cold", "frost"),
    "autumn": ("autumn fall october november harvest", "autumn"),
    "fire": ("fire red crimson lava volcano hell dragon", "crimson"),
    "violet": ("violet purple lavender", "violet neon"),
    "orange": ("orange ember amber", "ember canyon"),
    "pink": ("pink pastel rose peach", "rose"),
    "golden": ("golden gold warm", "golden autumn"),
    "emerald": ("emerald jade teal turquoise", "jade tropic"),
    "summer": ("summer tropical caribbean palm hawaii", "tropic"),
    "spring": ("spring green bloom may", "meadow"),
    "day": ("day noon sunny blue daylight clear bright", "azure tropic"),
}

# Palettes by place, for prompts without an hour.
MOODS: Mapping[str, str] = {
    "space": "cosmos nebula",
    "city": "neon ember midnight violet golden",
    "desert": "sahara canyon golden",
    "sea": "ember tropic golden rose midnight",
    "lake": "ember rose golden violet jade",
    "forest": "mist golden autumn jade",
    "alpine": "rose azure ember violet golden",
    "hills": "meadow golden azure autumn",
}

MOTIFS: Mapping[str, str] = {
    "aurora": "aurora borealis",
    "birds": "bird gull seagull crow raven eagle swallow goose geese crane flock dove",
    "boat": "boat ship sail sailing sailboat canoe fisherman fishing harbour harbor pirate yacht",
    "cabin": "cabin hut cottage house chalet farm home lodge barn",
    "balloon": "balloon airship zeppelin",
    "lighthouse": "lighthouse beacon",
    "wanderer": "man woman girl boy person child traveller traveler hiker wanderer knight samurai"
    " monk wizard king queen astronaut cosmonaut cat robot princess pilgrim explorer people"
    " couple lover hero warrior",
    "cactus": "cactus cacti arizona mexico western",
    "snow": "snow snowy snowfall blizzard christmas snowing",
    "rain": "rain rainy storm stormy monsoon thunderstorm",
    "mist": "mist misty fog foggy haze hazy",
    "stars": "star starry milky meteor",
    "meteor": "meteor comet shooting wish",
    "crescent": "crescent",
    "forest": "forest wood woodland pine tree spruce fir",
    "mountains": "mountain alps alpine peak summit fjord",
    "winter": "winter snow snowy ice icy frozen arctic glacier frost",
    "ring": "saturn ring ringed",
}


def words_of(prompt: str) -> frozenset[str]:
    """Return the words of a prompt in lower case; plurals also in the singular."""
    text = prompt.lower().replace("northern light", "aurora")
    found = re.findall(r"[^\W\d_]+", text)
    singular = (
        word.removesuffix(ending)
        for word in found
        for ending in ("s", "es")
        if len(word) > _NO_PLURAL
    )
    return frozenset(found) | frozenset(singular)


def named(words: frozenset[str], vocabulary: Mapping[str, str]) -> list[str]:
    """Return the vocabulary's keys that occur in the words, in the vocabulary's order."""
    return [key for key, entry in vocabulary.items() if not words.isdisjoint(entry.split())]
