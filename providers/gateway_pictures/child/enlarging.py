"""Enlarges a picture by SPAN, or repairs it by SRVGGNet, in tiles that overlap."""

import numpy as np
from generation_gateway_models import weights
from numpy.typing import NDArray
from PIL import Image

from gateway.sandbox.errors import SandboxRefusal
from gateway_pictures.child.faithful import replace_unlike, without_transparency
from gateway_pictures.child.nets import Net
from gateway_pictures.child.pictures import encode, is_flat, load_formats, open_picture

_MODELS = {
    "enlarge 2x": ("span-x2.onnx", 2),
    "enlarge 4x": ("span-x4.onnx", 4),
    "repair": ("realesr-x4.onnx", 4),
}
# A tile's side, and the pixels around it that the network sees, too. A pixel of a result depends on
# 21 pixels in each direction; with fewer, the seams of tiles become visible.
_TILE, _AROUND = 160, 22
_STEP = 32
_nets: dict[str, tuple[Net, int]] = {}


def load() -> None:
    """Load the networks and Pillow's formats."""
    load_formats()
    tile = np.zeros((8, 8, 3), np.uint8)
    for name, (file, scale) in _MODELS.items():
        _nets[name] = Net(weights(file), has_arena=True), scale
        _run(_nets[name][0], tile)


def enlarge(data: bytes, work: str, resolution: str, output_format: str) -> bytes:
    """Return a picture with `resolution` times the sides; `work` is "enlarge" or "repair".

    Raises `SandboxRefusal` if the picture cannot be decoded or the result cannot be sold.
    """
    factor = int(resolution.removesuffix("x"))
    net, scale = _nets["repair" if work == "repair" else f"enlarge {resolution}"]
    image = open_picture(data)
    alpha = image.getchannel("A") if image.mode == "RGBA" else None
    plain = image if alpha is None else without_transparency(image)
    large = enlarged(net, plain, scale, factor)
    if work == "enlarge":
        replace_unlike(plain, large)
    if alpha is not None:
        large.putalpha(alpha.resize(large.size, Image.Resampling.BICUBIC))
    if is_flat(large):
        raise SandboxRefusal("The picture shows next to nothing.")
    return encode(large, output_format)


def enlarged(
    net: Net, image: Image.Image, scale: int, factor: int, tile: int = _TILE
) -> Image.Image:
    """Return an RGB picture with `factor` times the sides; the network has a scale of its own."""
    # All tiles have one size, because the runtime keeps memory for each size.
    tile = min(tile, -(-max(image.size) // _STEP) * _STEP)
    more = [(_AROUND, _AROUND - side % -tile) for side in (image.height, image.width)]
    pixels = np.pad(np.asarray(image), (*more, (0, 0)), mode="edge")
    large = Image.new("RGB", (image.width * factor, image.height * factor))
    for top in range(0, image.height, tile):
        for left in range(0, image.width, tile):
            seen = pixels[top : top + tile + 2 * _AROUND, left : left + tile + 2 * _AROUND]
            made = Image.fromarray(_inner(_run(net, seen), _AROUND * scale))
            part = made.reduce(scale // factor) if factor < scale else made
            large.paste(part, (left * factor, top * factor))
    return large


def _run(net: Net, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    levels = pixels.transpose(2, 0, 1)[None].astype(np.float32) / 255
    made = net.run(levels)[0].clip(0, 1)
    large: NDArray[np.uint8] = (made.transpose(1, 2, 0) * 255 + 0.5).astype(np.uint8)
    return large


def _inner(pixels: NDArray[np.uint8], edge: int) -> NDArray[np.uint8]:
    return np.ascontiguousarray(pixels[edge:-edge, edge:-edge])
