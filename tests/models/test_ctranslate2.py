"""A model of CTranslate2 is rounded to 8 bits as CTranslate2 itself does it."""

import struct

import pytest

np = pytest.importorskip("numpy")


def text(name):
    return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"


def variable(name, shape, kind, data):
    head = text(name) + struct.pack(f"<B{len(shape)}I", len(shape), *shape)
    return head + struct.pack("<BI", kind, len(data)) + data


def halves(*numbers):
    return np.array(numbers, np.float16).tobytes()


def floats(*numbers):
    return np.array(numbers, np.float32).tobytes()


HEAD = struct.pack("<I", 6) + text("WhisperSpec") + struct.pack("<I", 3)
MODEL = (
    HEAD
    + struct.pack("<I", 3)
    + variable("linear/weight", (2, 2), 4, halves(0.5, -1.0, 0, 0))
    + variable("conv1/weight", (1, 1, 1), 4, halves(0.25))
    + variable("heads", (2,), 2, b"\1\2")
    + struct.pack("<I", 1)
    + text("projection/weight")
    + text("linear/weight")
)
ROUNDED = (
    HEAD
    + struct.pack("<I", 4)
    + variable("linear/weight", (2, 2), 1, bytes([64, 129, 0, 0]))
    + variable("linear/weight_scale", (2,), 0, floats(127, 1))
    + variable("conv1/weight", (1, 1, 1), 0, floats(0.25))
    + variable("heads", (2,), 2, b"\1\2")
    + struct.pack("<I", 2)
    + text("projection/weight")
    + text("linear/weight")
    + text("projection/weight_scale")
    + text("linear/weight_scale")
)


def test_matrices_have_8_bits_and_a_scale_for_each_row_and_the_rest_has_32():
    from models.convert.ctranslate2 import convert

    assert convert(MODEL) == ROUNDED


def test_a_model_in_parts_is_put_together():
    from models.convert.ctranslate2 import convert

    assert convert(MODEL[:40], MODEL[40:]) == ROUNDED
