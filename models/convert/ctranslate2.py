"""Rounds the matrices of a CTranslate2 model to 8 bits, which halves its file and its memory.

The numbers are those that CTranslate2 itself computes when it loads a model with
`compute_type="int8"`: each row has a scale, which maps its largest weight to 127.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

# The types of variables in the file.
_FLOAT32, _INT8, _FLOAT16 = 0, 1, 4
_MATRIX_RANK = 2
_LARGEST = 127


@dataclass
class _Reader:
    data: bytes
    at: int = 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return int(value)

    def raw(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> str:
        """Return a text, which ends with a zero byte."""
        return self.raw(self.number("H"))[:-1].decode()


@dataclass(frozen=True)
class _Variable:
    name: str
    shape: tuple[int, ...]
    kind: int
    data: bytes

    def pack(self) -> bytes:
        shape = struct.pack(f"<B{len(self.shape)}I", len(self.shape), *self.shape)
        return _text(self.name) + shape + struct.pack("<BI", self.kind, len(self.data)) + self.data


def convert(*parts: bytes) -> bytes:
    """Return a model of 16-bit floats with its matrices in 8 bits and the rest in 32.

    A package may contain the file in parts.
    """
    reader = _Reader(b"".join(parts))
    version, spec, revision = reader.number("I"), reader.text(), reader.number("I")
    read = [_read_variable(reader) for _ in range(reader.number("I"))]
    aliases = [(reader.text(), reader.text()) for _ in range(reader.number("I"))]
    made = [one for variable in read for one in _rounded(variable)]
    names = {one.name for one in made}
    # A second name of a matrix needs one of its scales.
    aliases += [
        (f"{alias}_scale", f"{name}_scale") for alias, name in aliases if f"{name}_scale" in names
    ]
    head = struct.pack("<I", version) + _text(spec) + struct.pack("<II", revision, len(made))
    tail = struct.pack("<I", len(aliases)) + b"".join(_text(a) + _text(b) for a, b in aliases)
    return head + b"".join(one.pack() for one in made) + tail


def _read_variable(reader: _Reader) -> _Variable:
    name = reader.text()
    shape = tuple(reader.number("I") for _ in range(reader.number("B")))
    kind = reader.number("B")
    return _Variable(name, shape, kind, reader.raw(reader.number("I")))


def _rounded(variable: _Variable) -> Iterator[_Variable]:
    """Yield a matrix in 8 bits and its scales, or another variable in 32 bits."""
    if variable.kind != _FLOAT16:
        yield variable
        return
    floats = np.frombuffer(variable.data, np.float16).astype(np.float32).reshape(variable.shape)
    name, shape = variable.name, variable.shape
    # CTranslate2 computes convolutions in floats.
    if len(shape) != _MATRIX_RANK or not name.endswith("weight") or "conv" in name:
        yield _Variable(name, shape, _FLOAT32, floats.tobytes())
        return
    largest = np.abs(floats).max(axis=1)
    scales = np.where(largest == 0, 1, _LARGEST / np.where(largest == 0, 1, largest))
    scales = scales.astype(np.float32)
    whole = np.rint(floats * scales[:, None]).astype(np.int8)
    yield _Variable(name, shape, _INT8, whole.tobytes())
    yield _Variable(f"{name}_scale", shape[:1], _FLOAT32, scales.tobytes())


def _text(text: str) -> bytes:
    data = text.encode() + b"\0"
    return struct.pack("<H", len(data)) + data
