"""The child process: reads one order as JSON, draws it, writes the file to standard output."""

import json
import sys

from PIL import Image

from .encoding import encode
from .picture import draw


def main() -> None:
    """Draw the order on standard input: prompt, width, height, scale, enlarge, output_format."""
    order = json.load(sys.stdin.buffer)
    picture = draw(order["prompt"], order["width"], order["height"], order["scale"])
    if order["enlarge"] > 1:
        size = (picture.width * order["enlarge"], picture.height * order["enlarge"])
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    sys.stdout.buffer.write(encode(picture, order["output_format"]))


if __name__ == "__main__":
    main()
