"""Trees: firs one by one and in rows, the lone tree on a hill, and the grass below."""

import math
from random import Random

from .colour import mix
from .scene import Scene
from .svg import Drawing, Point, disc, height_at, outline

_CLEARING = 0.14  # chance, at each fir, that another clump begins


def fir(dice: Random, x: float, foot: float, height: float) -> str:
    """Return the path of one fir, its branches drooping and no two alike."""
    tiers = max(5, min(13, int(height / 7)))
    slim = dice.uniform(0.15, 0.21)
    left: list[Point] = []
    right: list[Point] = []
    for tier in range(1, tiers + 1):
        share = tier / tiers
        y = foot - height * (1 - share * 0.93)
        for edge, sign in ((left, -1), (right, 1)):
            tip = sign * height * slim * share**0.85 * dice.uniform(0.72, 1.12)
            edge.append((x + tip, y + height * dice.uniform(0, 0.024)))
            edge.append((x + tip * dice.uniform(0.34, 0.5), y - height * 0.008))
    thick, ankle = height * 0.016, foot - height * 0.07
    trunk = [(x + thick, ankle), (x + thick, foot), (x - thick, foot), (x - thick, ankle)]
    return outline([(x, foot - height), *right, *trunk, *left[::-1]])


def row_of_firs(dice: Random, line: list[Point], spacing: float, height: float) -> str:
    """Return firs along a line, in clumps and clearings."""
    data, x = "", line[0][0] - spacing
    clump = dice.uniform(0.7, 1.2)
    while x < line[-1][0] + spacing:
        if dice.random() < _CLEARING:
            clump = dice.uniform(0.55, 1.25)
        tall = height * clump * dice.uniform(0.6, 1.1)
        data += fir(dice, x, height_at(line, x) + tall * 0.1, tall)
        x += spacing * dice.uniform(0.45, 1.5)
    return data


def paint_frame_of_firs(drawing: Drawing, scene: Scene) -> None:
    """Paint tall firs at both sides of the foreground, leaving the middle open."""
    palette = scene.palette
    for row, tone in enumerate((mix(palette.land[2], palette.land[1], 0.16), palette.land[2])):
        dice = scene.dice(f"frame {row}")
        data = _firs_at_side(dice, scene, row, -scene.light_side, 1.0)
        data += _firs_at_side(dice, scene, row, scene.light_side, 0.62)
        drawing.fill(data, tone)


def _firs_at_side(dice: Random, scene: Scene, row: int, side: int, weight: float) -> str:
    data, unit = "", scene.unit
    for _ in range(int((9 + 5 * row) * weight * max(1.0, scene.width / scene.height))):
        inward = dice.random() ** 1.7 * 0.3 * weight
        tall = unit * (320 + 150 * row) * weight * (1 - inward * 2.4) * dice.uniform(0.6, 1.1)
        x = scene.width * (inward if side < 0 else 1 - inward)
        if tall > unit * 110:  # smaller ones would stand there like weeds
            data += fir(dice, x, scene.height + unit * (dice.uniform(15, 40) + row * 30), tall)
    return data


def paint_lone_tree(drawing: Drawing, scene: Scene, foot: Point, height: float) -> None:
    """Paint one broad tree with a crown lit in three tones."""
    dice, (x, y), side = scene.dice("lone tree"), foot, scene.light_side
    tone = mix(scene.palette.land[2], scene.palette.land[1], 0.12)
    sunny = mix(tone, scene.palette.glow, 0.42)
    thick = height * 0.035
    trunk = [(-1.8, 0.01), (-0.7, -0.2), (-0.4, -0.55), (0.5, -0.55), (0.8, -0.2), (1.9, 0.01)]
    drawing.fill(outline((x + dx * thick, y + dy * height) for dx, dy in trunk), tone)
    for layer, (leaves, light) in enumerate(((90, 0.0), (60, 0.22), (34, 0.5))):
        crown = ""
        for _ in range(leaves):
            turn, out = dice.uniform(0, math.tau), dice.random() ** 0.6 * (1 - 0.16 * layer)
            dx = math.cos(turn) * out * 0.42 + side * 0.035 * layer
            dy = math.sin(turn) * out * 0.25 - 0.035 * layer
            lift = 0.66 - dy - 0.3 * dx * dx
            crown += disc(x + dx * height, y - lift * height, height * dice.uniform(0.022, 0.06))
        drawing.fill(crown, mix(tone, sunny, light))


def paint_tufts(drawing: Drawing, scene: Scene, line: list[Point], tone: str) -> None:
    """Paint grass along a line."""
    dice, unit = scene.dice("tufts"), scene.unit
    data, x = "", line[0][0]
    while x < line[-1][0]:
        y, tall = height_at(line, x), unit * dice.uniform(8, 30)
        tip = (x + dice.uniform(-0.5, 0.5) * tall, y - tall)
        data += (
            f"M{x - 1.3 * unit:.1f} {y + 3:.1f}Q{x:.1f} {y - tall * 0.6:.1f} {tip[0]:.1f}"
            f" {tip[1]:.1f}Q{x + 1.5 * unit:.1f} {y - tall * 0.5:.1f} {x + 1.5 * unit:.1f}"
            f" {y + 3:.1f}Z"
        )
        x += unit * dice.uniform(2, 9)
    drawing.fill(data, tone)
