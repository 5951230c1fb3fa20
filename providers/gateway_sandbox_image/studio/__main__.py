"""The child process: reads one order as JSON, draws it, writes the file to standard output."""

import json
import sys

from PIL import Image

from .encoding import encode
from .picture import draw
from .restyle import restyle


def main() -> None:
    """Draw the order in the first line of standard input: prompt, output_format, and more.

    A new picture needs width, height, scale and enlarge. If `restyle` is true, the rest of standard
    input is the picture to restyle.
    """
    order = json.loads(sys.stdin.buffer.readline())
    if order.get("restyle"):
        picture = restyle(order["prompt"], sys.stdin.buffer.read())
    else:
        picture = draw(order["prompt"], order["width"], order["height"], order["scale"])
        if order["enlarge"] > 1:
            size = (picture.width * order["enlarge"], picture.height * order["enlarge"])
            picture = picture.resize(size, Image.Resampling.LANCZOS)
    sys.stdout.buffer.write(encode(picture, order["output_format"]))


if __name__ == "__main__":
    main()
