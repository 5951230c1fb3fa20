"""Compositions: dispatches to the painters of each place, and adds the weather."""

from collections.abc import Callable

from . import alpine, city, desert, forest, hills, lake, sea, space
from .figures import paint_balloons, paint_birds
from .scene import Scene
from .sky import paint_sky
from .svg import Drawing
from .weather import paint_aurora, paint_clouds, paint_mist, paint_rain, paint_snowfall

WATERSIDE = ("lake", "sea", "city")

_Painter = Callable[[Drawing, Scene], None]
_PLACES: tuple[tuple[str, _Painter, _Painter], ...] = (
    ("alpine", alpine.paint_backdrop, alpine.paint_front),
    ("city", city.paint_backdrop, city.paint_front),
    ("desert", desert.paint_backdrop, desert.paint_front),
    ("forest", forest.paint_backdrop, forest.paint_front),
    ("hills", hills.paint_backdrop, hills.paint_front),
    ("lake", lake.paint_backdrop, lake.paint_front),
    ("sea", sea.paint_backdrop, sea.paint_front),
    ("space", space.paint_backdrop, space.paint_front),
)


def paint_backdrop(drawing: Drawing, scene: Scene) -> None:
    """Paint everything that water would reflect: the sky and the horizon."""
    paint_sky(drawing, scene)
    if "aurora" in scene.motifs:
        paint_aurora(drawing, scene)
    paint_clouds(drawing, scene)
    if "birds" in scene.motifs:
        paint_birds(drawing, scene)
    if "balloon" in scene.motifs:
        paint_balloons(drawing, scene)
    for place, backdrop, _ in _PLACES:
        if place == scene.setting:
            backdrop(drawing, scene)


def paint_front(drawing: Drawing, scene: Scene) -> None:
    """Paint the foreground, rain and snow."""
    for place, _, front in _PLACES:
        if place == scene.setting:
            front(drawing, scene)
    if "mist" in scene.motifs:
        paint_mist(drawing, scene, scene.horizon + 20 * scene.unit, 300 * scene.unit, 0.7)
    if "rain" in scene.motifs:
        paint_rain(drawing, scene)
    if "snow" in scene.motifs:
        paint_snowfall(drawing, scene)
