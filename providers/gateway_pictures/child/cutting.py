"""Cuts the subject out of a picture, by U²-Net p or ISNet.

A network sees a small copy of the picture, and returns how likely each pixel belongs to the
subject. A guided filter then moves the coarse outline to the picture's own edges.
"""

from typing import NamedTuple

import numpy as np
from generation_gateway_models import weights
from PIL import Image, ImageChops

from gateway.sandbox.errors import SandboxRefusal
from gateway_pictures.child.nets import Floats, Net
from gateway_pictures.child.pictures import encode, is_flat, load_formats, on_paper, open_picture

# The longest side of the picture to which the outline is fitted.
_GUIDE_SIDE = 1280
_RADIUS, _SMOOTHNESS = 8, 1e-4
# Below and above these, a pixel is no part of the subject, and wholly.
_LOW, _HIGH = 0.1, 0.9
# If no pixel is as likely as this, the network has found no subject.
_LEAST_LIKELY = 0.5


class _Model(NamedTuple):
    net: Net
    # The sides of the small copy.
    side: int
    mean: tuple[float, float, float]
    spread: tuple[float, float, float]


_models: list[_Model] = []


def load_u2net() -> None:
    """Load the small network and Pillow's formats."""
    net = Net(weights("u2netp.onnx"), has_arena=False)
    _load(_Model(net, 320, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


def load_isnet() -> None:
    """Load the large network and Pillow's formats."""
    net = Net(weights("isnet.onnx"), has_arena=False)
    _load(_Model(net, 1024, (0.5, 0.5, 0.5), (1.0, 1.0, 1.0)))


def _load(model: _Model) -> None:
    load_formats()
    _models.append(model)


def cut_out(data: bytes, background: str, output_format: str) -> bytes:
    """Return the subject of a picture as PNG or WebP, on a `#rrggbb` or transparent background.

    Raises `SandboxRefusal` if there is no subject, or the picture cannot be decoded.
    """
    # The picture is dropped while the network runs: together they exceed a small machine.
    small, guide = _shrink(open_picture(data), _models[0])
    mask: Floats = _models[0].net.run(small)[0, 0]
    outline = _fit(mask, guide)
    image = open_picture(data)
    alpha = outline.resize(image.size, Image.Resampling.BILINEAR)
    if image.mode == "RGBA":
        alpha = ImageChops.multiply(alpha, image.getchannel("A"))
    image.putalpha(alpha)
    made = on_paper(image, background) if background else image
    if is_flat(made):
        raise SandboxRefusal("No subject was found that differs from the background.")
    return encode(made, output_format)


def _shrink(image: Image.Image, model: _Model) -> tuple[Floats, Floats]:
    """Return the network's input, and the grey picture to which its outline is fitted."""
    seen = on_paper(image, "#ffffff") if image.mode == "RGBA" else image
    scale = min(1.0, _GUIDE_SIDE / max(seen.size))
    size = (max(1, round(seen.width * scale)), max(1, round(seen.height * scale)))
    small = seen.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0)
    guide = np.asarray(small.convert("L"), dtype=np.float32) / 255
    side = (model.side, model.side)
    square = np.asarray(seen.resize(side, Image.Resampling.BILINEAR, reducing_gap=2.0))
    levels = (square.astype(np.float32) / 255 - model.mean) / model.spread
    return np.ascontiguousarray(levels.transpose(2, 0, 1)[None], np.float32), guide


def _fit(mask: Floats, guide: Floats) -> Image.Image:
    """Return the outline as a grey picture of the guide's size."""
    if mask.max() < _LEAST_LIKELY:
        raise SandboxRefusal("No subject was found in the picture.")
    stretched = (mask - mask.min()) / (mask.max() - mask.min())
    height, width = guide.shape
    coarse = Image.fromarray((stretched * 255).astype(np.uint8))
    large = coarse.resize((width, height), Image.Resampling.BICUBIC)
    fine = _guided(guide, np.asarray(large, dtype=np.float32) / 255)
    levels = ((fine - _LOW) / (_HIGH - _LOW)).clip(0, 1)
    return Image.fromarray((levels * 255 + 0.5).astype(np.uint8))


def _guided(guide: Floats, mask: Floats) -> Floats:
    """Filter a mask so that its edges are those of a picture (He, Sun and Tang, 2010)."""
    mean_guide, mean_mask = _mean(guide), _mean(mask)
    covariance = _mean(guide * mask) - mean_guide * mean_mask
    variance = _mean(guide * guide) - mean_guide * mean_guide
    slope = covariance / (variance + _SMOOTHNESS)
    return _mean(slope) * guide + _mean(mean_mask - slope * mean_guide)


def _mean(values: Floats) -> Floats:
    """Return the mean of the square around each pixel."""
    width = 2 * _RADIUS + 1
    for axis in (0, 1):
        before = [(0, 0), (0, 0)]
        before[axis] = (_RADIUS + 1, _RADIUS)
        sums = np.cumsum(np.pad(values, before, mode="edge"), axis, dtype=np.float64)
        last, first = np.split(sums, [width], axis)[1], np.split(sums, [-width], axis)[0]
        values = ((last - first) / width).astype(np.float32)
    return values
