"""Workflows for tests. They need no model weights, so that a real ComfyUI runs them too."""

import copy
import json
from pathlib import Path

PICTURE = {
    "1": {
        "class_type": "EmptyImage",
        "inputs": {"width": 512, "height": 512, "batch_size": 1, "color": 4482730},
    },
    "2": {
        "class_type": "SlowImage",
        "inputs": {"image": ["1", 0], "text": "a text", "seconds": 0.1, "seed": 7, "mode": "ok"},
    },
    "9": {
        "class_type": "SaveImage",
        "inputs": {"images": ["2", 0], "filename_prefix": "ComfyUI"},
    },
}
UPSCALE = {
    "1": {"class_type": "LoadImage", "inputs": {"image": "example.png"}},
    "2": {
        "class_type": "ImageScaleBy",
        "inputs": {"image": ["1", 0], "upscale_method": "lanczos", "scale_by": 2.0},
    },
    "9": {
        "class_type": "SaveImage",
        "inputs": {"images": ["2", 0], "filename_prefix": "ComfyUI"},
    },
}
CLIP = {
    "1": {
        "class_type": "EmptyImage",
        "inputs": {"width": 64, "height": 64, "batch_size": 30, "color": 4482730},
    },
    "2": {
        "class_type": "SlowImage",
        "inputs": {"image": ["1", 0], "text": "a text", "seconds": 0.1, "seed": 7, "mode": "ok"},
    },
    "3": {"class_type": "CreateVideo", "inputs": {"images": ["2", 0], "fps": 30.0}},
    "9": {
        "class_type": "SaveVideo",
        "inputs": {
            "video": ["3", 0],
            "filename_prefix": "video/ComfyUI",
            "format": "auto",
            "codec": "auto",
        },
    },
}
PICTURE_TOML = """
title = "Picture"
capability = "text-to-image"
price = "0.03"
output = "9"
timeout_s = 120

[inputs]
prompt = "2.text"
seed = "2.seed"
width = "1.width"
height = "1.height"

[sizes]
"1K" = 256
"2K" = 512
"""
UPSCALE_TOML = """
title = "Upscale"
capability = "image-upscaling"
price = "0.02"
output = "9"

[inputs]
picture = "1.image"
"""
CLIP_TOML = """
title = "Clip"
capability = "text-to-video"
price = "0.05"
output = "9"

[inputs]
prompt = "2.text"
seed = "2.seed"
"""
ALL = {
    "clip": (CLIP, CLIP_TOML),
    "picture": (PICTURE, PICTURE_TOML),
    "upscale": (UPSCALE, UPSCALE_TOML),
}


def changed(graph, **values):
    """A copy with other values, such as `changed(PICTURE, n2_mode="error")`."""
    found = copy.deepcopy(graph)
    for name, value in values.items():
        number, _, field = name.removeprefix("n").partition("_")
        found[number]["inputs"][field] = value
    return found


def write(folder: Path, name: str, graph, toml: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(graph))
    (folder / f"{name}.toml").write_text(toml)


def write_all(folder: Path) -> Path:
    for name, (graph, toml) in ALL.items():
        write(folder, name, graph, toml)
    return folder
