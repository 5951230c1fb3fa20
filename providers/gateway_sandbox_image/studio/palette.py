"""Colour palettes by mood, chosen by eye."""

import attrs


@attrs.frozen(kw_only=True)
class Palette:
    """The colours of one hour and weather."""

    name: str
    sky: tuple[str, ...]  # zenith to horizon
    disc: str  # sun or moon
    glow: str  # the light around it
    lit: str  # the side of clouds and snow that faces it
    shade: str  # the side that does not
    land: tuple[str, str, str]  # far, middle, near
    lamp: str = "#ffcf87"  # windows and lanterns
    stars: float = 0.0  # 0 none to 1 all of them
    altitude: tuple[float, float] = (0.06, 0.3)  # of the disc over the horizon; 1 is the zenith
    clouds: float = 0.5  # 0 clear to 1 overcast
    is_night: bool = False  # a moon stands in the sky


EMBER = Palette(
    name="ember",
    sky=("#1d2148", "#45306a", "#8f3d6b", "#d95d58", "#f7975a", "#ffd296"),
    disc="#fff1cf",
    glow="#ffc070",
    lit="#ffb37c",
    shade="#6b3a68",
    land=("#c96a6c", "#6a3561", "#1a1430"),
    stars=0.25,
)
GOLDEN = Palette(
    name="golden",
    sky=("#3c6a86", "#6f9398", "#b9b490", "#eec27c", "#fbd590", "#ffebb8"),
    disc="#fffbe6",
    glow="#ffdf94",
    lit="#fff0c4",
    shade="#b99a86",
    land=("#dfb27a", "#94703f", "#2c241a"),
    altitude=(0.14, 0.36),
)
ROSE = Palette(
    name="rose",
    sky=("#5878a6", "#8ba0c0", "#c3b6c6", "#eec3bd", "#fbd8bd", "#fff0d8"),
    disc="#fffaf0",
    glow="#ffdcc0",
    lit="#fff1e6",
    shade="#a99bb8",
    land=("#c3a9b8", "#6d6b90", "#22294a"),
)
VIOLET = Palette(
    name="violet",
    sky=("#0f1236", "#2a2263", "#5a3487", "#9c4b93", "#dc7a8c", "#f9b79a"),
    disc="#ffe9d8",
    glow="#ffa590",
    lit="#f79cab",
    shade="#4a3379",
    land=("#a3609c", "#4c3277", "#110f2b"),
    stars=0.55,
)
CRIMSON = Palette(
    name="crimson",
    sky=("#331326", "#6a1c34", "#a93336", "#dd5f3a", "#f39a4f", "#fbcf86"),
    disc="#fff0c2",
    glow="#ffb055",
    lit="#ffa463",
    shade="#7a2a3c",
    land=("#c05a44", "#6c2436", "#1c0d1a"),
    altitude=(0.1, 0.34),
)
MIDNIGHT = Palette(
    name="midnight",
    sky=("#040918", "#0a1633", "#12294f", "#1f4369", "#3a6684", "#7397a3"),
    disc="#fbf3dc",
    glow="#a9c9d8",
    lit="#5f86a3",
    shade="#10233f",
    land=("#3d6580", "#17324d", "#050b18"),
    stars=1.0,
    altitude=(0.45, 0.75),
    clouds=0.3,
    is_night=True,
)
JADE = Palette(
    name="jade",
    sky=("#031218", "#06262e", "#0b3e44", "#1b5d5c", "#4b8576", "#a5b695"),
    disc="#fdf6d8",
    glow="#cfe0b4",
    lit="#7fae9a",
    shade="#0b3439",
    land=("#3f7a70", "#154549", "#031015"),
    stars=0.9,
    altitude=(0.4, 0.72),
    clouds=0.3,
    is_night=True,
)
AURORA = Palette(
    name="aurora",
    sky=("#030616", "#07122a", "#0a2238", "#0f3a4b", "#1c5757", "#3c7a6b"),
    disc="#eef6e8",
    glow="#8fd8bd",
    lit="#b9e3d6",
    shade="#1d3d55",
    land=("#27566a", "#103044", "#040b16"),
    stars=1.0,
    altitude=(0.5, 0.8),
    clouds=0.1,
    is_night=True,
)
AZURE = Palette(
    name="azure",
    sky=("#2766a8", "#4589c2", "#74aed5", "#a9cfe0", "#d6e6e4", "#f6eed9"),
    disc="#fffdf2",
    glow="#fff3d0",
    lit="#ffffff",
    shade="#a9bfd2",
    land=("#a3c0cc", "#4f7f86", "#173a3d"),
    altitude=(0.5, 0.8),
    clouds=0.6,
)
MEADOW = Palette(
    name="meadow",
    sky=("#4d93b8", "#79b0c4", "#a9cccb", "#d3dfc6", "#f0e8c4", "#fbf1d0"),
    disc="#fffdf0",
    glow="#fff2c2",
    lit="#fffdf2",
    shade="#b4c4c2",
    land=("#b7c9a5", "#7a9a62", "#2b4a32"),
    altitude=(0.4, 0.75),
    clouds=0.6,
)
MIST = Palette(
    name="mist",
    sky=("#7d9497", "#98aaa9", "#b4c1bb", "#cfd5ca", "#e3e3d6", "#f0ecdf"),
    disc="#fffdf4",
    glow="#fff6e0",
    lit="#f5f3e8",
    shade="#9fb0ae",
    land=("#b6c4bf", "#64807f", "#16282b"),
    altitude=(0.25, 0.5),
    clouds=0.4,
)
FROST = Palette(
    name="frost",
    sky=("#5a7fae", "#86a4c8", "#b1c4da", "#d5d9e4", "#f0ddda", "#fde9d4"),
    disc="#fffaf0",
    glow="#ffe7d0",
    lit="#ffffff",
    shade="#a3b5d1",
    land=("#bccadf", "#6d87ac", "#22365a"),
)
AUTUMN = Palette(
    name="autumn",
    sky=("#5f8797", "#8ea7a4", "#c1bf9f", "#ecc98f", "#f8cf8c", "#fde3b2"),
    disc="#fffbe8",
    glow="#ffdf9e",
    lit="#fff0cd",
    shade="#b79c84",
    land=("#dba56c", "#a8532f", "#331a17"),
    altitude=(0.2, 0.45),
)
TROPIC = Palette(
    name="tropic",
    sky=("#0f649a", "#2f8db3", "#66b4c0", "#a4d2c6", "#dbe6c9", "#fdf2cf"),
    disc="#fffdf0",
    glow="#fff0c0",
    lit="#ffffff",
    shade="#9cc2cc",
    land=("#7fb8b5", "#2f7f86", "#0b3a46"),
    altitude=(0.35, 0.7),
    clouds=0.7,
)
STORM = Palette(
    name="storm",
    sky=("#18202b", "#28343f", "#41515b", "#647679", "#93a09a", "#c9c9b4"),
    disc="#f7f1dc",
    glow="#e6dfc0",
    lit="#a9b3ad",
    shade="#26323c",
    land=("#6c7f82", "#33444d", "#0d151b"),
    altitude=(0.1, 0.25),
    clouds=1.0,
)
SAHARA = Palette(
    name="sahara",
    sky=("#2f86a0", "#62aab0", "#a3c8b2", "#dcd7a8", "#f8dba0", "#ffe9bf"),
    disc="#fffdee",
    glow="#fff0c0",
    lit="#fff6dd",
    shade="#d7b793",
    land=("#ecc08a", "#d98a4e", "#7c3420"),
    altitude=(0.25, 0.6),
    clouds=0.25,
)
CANYON = Palette(
    name="canyon",
    sky=("#26325e", "#5b4778", "#a55c78", "#e58468", "#fab474", "#ffdfa6"),
    disc="#fff4d6",
    glow="#ffc983",
    lit="#ffc491",
    shade="#8a5272",
    land=("#e39a6f", "#b4523f", "#4a1a2b"),
    stars=0.2,
    clouds=0.4,
)
COSMOS = Palette(
    name="cosmos",
    sky=("#05040f", "#0a0920", "#141136", "#221a4e", "#34275f", "#4a3a72"),
    disc="#ffe6c2",
    glow="#ffb38a",
    lit="#e88fae",
    shade="#2a2a78",
    land=("#6b5a8c", "#33295a", "#0c0a1c"),
    stars=1.0,
    clouds=0.0,
    is_night=True,
)
NEBULA = Palette(
    name="nebula",
    sky=("#030910", "#05121c", "#0a2130", "#103446", "#1b4a58", "#2f6068"),
    disc="#f2f7dc",
    glow="#8fe0d0",
    lit="#5fc7bd",
    shade="#6a3b74",
    land=("#5a8288", "#24454f", "#060f16"),
    stars=1.0,
    clouds=0.0,
    is_night=True,
)
NEON = Palette(
    name="neon",
    sky=("#0a0b26", "#1b1550", "#43207c", "#8a2f90", "#d9508c", "#ff9a86"),
    disc="#ffe9c9",
    glow="#ff86a0",
    lit="#ff8fae",
    shade="#2f1f68",
    land=("#8a4a9a", "#38246f", "#0a0a24"),
    stars=0.5,
)

PALETTES = {
    palette.name: palette
    for palette in (
        *(EMBER, GOLDEN, ROSE, VIOLET, CRIMSON, MIDNIGHT, JADE, AURORA, AZURE, MEADOW),
        *(MIST, FROST, AUTUMN, TROPIC, STORM, SAHARA, CANYON, COSMOS, NEBULA, NEON),
    )
}
