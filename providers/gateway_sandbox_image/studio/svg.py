"""An SVG under construction: shapes in painting order, gradients on the side."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

import attrs
from PIL import Image

Point = tuple[float, float]
FALLOFF = (  # distance from a light and its strength there, both 0 to 1
    *((0.0, 1.0), (0.1, 0.72), (0.22, 0.44), (0.38, 0.22)),
    *((0.58, 0.08), (0.8, 0.018), (1.0, 0.0)),
)
Stop = tuple[float, str, float]  # offset, colour, opacity; both numbers 0 to 1


def line_through(points: Iterable[Point], start: str = "M") -> str:
    """Return path data that joins the points by straight lines."""
    joined = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f"{start}{joined}"


def outline(points: Iterable[Point]) -> str:
    """Return path data of a closed polygon."""
    return line_through(points) + "Z"


def below(points: Sequence[Point], floor: float) -> str:
    """Return path data of everything from a line down to `floor`, a little wider than the line."""
    (left, start), (right, end) = points[0], points[-1]
    rim = line_through([(left - 3, start), *points, (right + 3, end)])
    return f"{rim}V{floor:.1f}H{left - 3:.1f}Z"


def height_at(line: Sequence[Point], x: float) -> float:
    """Return the line's y at `x`; beyond its ends, the end's."""
    for (left, start), (right, end) in pairwise(line):
        if x <= right:
            return start + (end - start) * max(0.0, (x - left) / (right - left))
    return line[-1][1]


def smooth(points: Sequence[Point]) -> str:
    """Return path data of a soft curve through the points (Catmull-Rom as Béziers)."""
    padded = [points[0], *points, points[-1]]
    data = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for before, here, there, after in zip(padded, padded[1:], padded[2:], padded[3:], strict=False):
        leave = here[0] + (there[0] - before[0]) / 6, here[1] + (there[1] - before[1]) / 6
        reach = there[0] - (after[0] - here[0]) / 6, there[1] - (after[1] - here[1]) / 6
        data += "C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in (leave, reach, there))
    return data


def disc(x: float, y: float, radius: float) -> str:
    """Return path data of a circle, so that many circles make one shape."""
    across = 2 * radius
    return (
        f"M{x - radius:.1f} {y:.1f}a{radius:.2f} {radius:.2f} 0 1 1 {across:.2f} 0"
        f"a{radius:.2f} {radius:.2f} 0 1 1 {-across:.2f} 0Z"
    )


def fading(colour: str, strength: float) -> list[Stop]:
    """Return gradient stops of a realistic light falloff, without a visible rim."""
    return [(at, colour, strength * share) for at, share in FALLOFF]


@attrs.frozen(kw_only=True)
class Layer:
    """A soft picture between shapes; composing it with Pillow is much faster than in SVG."""

    picture: Image.Image  # RGBA, of any size
    x: float
    y: float
    width: float
    height: float


@attrs.frozen
class Place:
    """The position of a stencil: its origin is at `spot`, and 100 of its units measure `size`."""

    spot: Point
    size: float
    stretch: float = 1.0  # of its height; negative turns it upside down
    turn: float = 0.0  # degrees

    @property
    def transform(self) -> str:
        """The SVG attribute."""
        (x, y), scale = self.spot, self.size / 100
        turned = f" rotate({self.turn:.1f})" if self.turn else ""
        return (
            f' transform="translate({x:.1f} {y:.1f}){turned}'
            f' scale({scale:.4f} {scale * self.stretch:.4f})"'
        )


@attrs.define
class Drawing:
    """A canvas in units of one pixel at the smallest resolution."""

    width: int
    height: int
    _defs: list[str] = attrs.field(factory=list, init=False)
    _parts: list[str | Layer] = attrs.field(factory=list, init=False)

    def vertical(self, top: float, bottom: float, stops: Iterable[Stop]) -> str:
        """Define a gradient from `top` to `bottom` and return the paint that uses it."""
        return self._gradient("linear", f'x1="0" x2="0" y1="{top:.1f}" y2="{bottom:.1f}"', stops)

    def slanted(self, start: Point, end: Point, stops: Iterable[Stop]) -> str:
        """Define a gradient between two points and return the paint that uses it."""
        where = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
        return self._gradient("linear", where, stops)

    def radial(self, centre: Point, radius: float, stops: Iterable[Stop]) -> str:
        """Define a gradient around a point and return the paint that uses it."""
        where = f'cx="{centre[0]:.1f}" cy="{centre[1]:.1f}" r="{radius:.1f}"'
        return self._gradient("radial", where, stops)

    def fill(self, path: str, paint: str, opacity: float = 1.0) -> None:
        """Fill path data with a colour or gradient."""
        self._parts.append(f'<path d="{path}" fill="{paint}"{_faded("fill", opacity)}/>')

    def stroke(self, path: str, paint: str, width: float, opacity: float = 1.0) -> None:
        """Draw along path data with round ends."""
        self._parts.append(
            f'<path d="{path}" fill="none" stroke="{paint}" stroke-width="{width:.2f}"'
            f' stroke-linecap="round" stroke-linejoin="round"{_faded("stroke", opacity)}/>'
        )

    def stamp(self, path: str, place: Place, paint: str, opacity: float = 1.0) -> None:
        """Fill path data that has its own grid, at a place."""
        self._parts.append(
            f'<path d="{path}"{place.transform} fill="{paint}"{_faded("fill", opacity)}/>'
        )

    def stamp_line(
        self, path: str, place: Place, paint: str, width: float, opacity: float = 1.0
    ) -> None:
        """Stroke path data that has its own grid; the width is in grid units."""
        self._parts.append(
            f'<path d="{path}"{place.transform} fill="none" stroke="{paint}"'
            f' stroke-width="{width:.3f}" stroke-linecap="round" stroke-linejoin="round"'
            f"{_faded('stroke', opacity)}/>"
        )

    def cover(self, paint: str, opacity: float = 1.0) -> None:
        """Fill the whole canvas."""
        self.rect(0, 0, self.width, self.height, paint, opacity)

    def rect(
        self, x: float, y: float, width: float, height: float, paint: str, opacity: float = 1.0
    ) -> None:
        """Fill a rectangle."""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
            f' fill="{paint}"{_faded("fill", opacity)}/>'
        )

    def circle(self, centre: Point, radius: float, paint: str, opacity: float = 1.0) -> None:
        """Fill a circle."""
        self._parts.append(
            f'<circle cx="{centre[0]:.1f}" cy="{centre[1]:.1f}" r="{radius:.2f}"'
            f' fill="{paint}"{_faded("fill", opacity)}/>'
        )

    def lay(self, picture: Image.Image, x: float, y: float, width: float, height: float) -> None:
        """Draw a soft picture over the existing content, stretched to the rectangle."""
        self._parts.append(Layer(picture=picture, x=x, y=y, width=width, height=height))

    def markup(self, element: str) -> None:
        """Add an element unchanged; the caller has escaped it."""
        self._parts.append(element)

    def runs(self, scale: int) -> Iterator[str | Layer]:
        """Yield, in painting order, SVG documents at `scale` pixels per unit, and soft layers."""
        for is_shape, parts in groupby(self._parts, key=lambda part: isinstance(part, str)):
            if is_shape:
                yield self._document("".join(str(part) for part in parts), scale)
            else:
                yield from parts

    def _document(self, body: str, scale: int) -> str:
        used = set(re.findall(r"url\(#(g\d+)\)", body))
        definitions = "".join(text for index, text in enumerate(self._defs) if f"g{index}" in used)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}"'
            f' width="{self.width * scale}" height="{self.height * scale}">'
            f"<defs>{definitions}</defs>{body}</svg>"
        )

    def _gradient(self, kind: str, where: str, stops: Iterable[Stop]) -> str:
        name = f"g{len(self._defs)}"
        inner = "".join(
            f'<stop offset="{at:.3f}" stop-color="{colour}"{_faded("stop", opacity)}/>'
            for at, colour, opacity in stops
        )
        self._defs.append(
            f'<{kind}Gradient id="{name}" gradientUnits="userSpaceOnUse" {where}>'
            f"{inner}</{kind}Gradient>"
        )
        return f"url(#{name})"


def _faded(kind: str, opacity: float) -> str:
    return "" if opacity >= 1 else f' {kind}-opacity="{max(0.0, opacity):.3f}"'
