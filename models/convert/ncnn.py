"""Converts a network of ncnn (`.param` and `.bin`) to ONNX.

Knows the layers of SPAN and SRVGGNet alone. Weights stay half-precision if they were: the runtime
widens them once, when it loads the network.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

MAGIC = "7767517"
# ONNX operators of this version are understood by every onnxruntime since 1.14.
OPSET, IR = 17, 8
_HALF_FLAG = 0x01306B47
_OPERATORS = {0: "Add", 1: "Sub", 2: "Mul"}
_KNOWN_PARAMETERS = {
    "Convolution": {0, 1, 4, 5, 6},
    "PReLU": {0},
    "MemoryData": {0, 1, 2},
    "BinaryOp": {0, 1, 2},
    "PixelShuffle": {0},
    "Interp": {0, 1, 2},
}


@dataclass(frozen=True)
class Layer:
    """One line of a `.param` file."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: dict[int, float]

    def whole(self, key: int, default: int = 0) -> int:
        """Return a parameter that is a whole number."""
        return int(self.parameters.get(key, default))


def convert(param: bytes, weights: bytes) -> bytes:
    """Return the network as an ONNX file: `data` in, `output` out, of any size."""
    network = _Network(weights)
    for layer in read_layers(param.decode()):
        _WRITERS[layer.kind](network, layer)
    network.finish()
    return network.model()


def read_layers(param: str) -> list[Layer]:
    """Parse a `.param` file. Raises ValueError for a layer that no converter knows."""
    magic, _counts, *lines = (line for line in param.splitlines() if line.strip())
    if magic.strip() != MAGIC:
        raise ValueError("This is no .param file of ncnn.")
    return [_read_layer(line.split()) for line in lines]


def _read_layer(words: Sequence[str]) -> Layer:
    kind, name, inputs, outputs = words[0], words[1], int(words[2]), int(words[3])
    blobs, pairs = words[4 : 4 + inputs + outputs], words[4 + inputs + outputs :]
    parameters = {int(key): float(value) for key, value in (pair.split("=") for pair in pairs)}
    unknown = parameters.keys() - _KNOWN_PARAMETERS.get(kind, set())
    if kind not in _WRITERS or (unknown and kind != "Input"):
        raise ValueError(f"The layer {name} ({kind}) has parts that this converter does not know.")
    return Layer(kind, name, tuple(blobs[:inputs]), tuple(blobs[inputs:]), parameters)


class _Network:
    """An ONNX graph in the making, and the rest of the `.bin` file."""

    def __init__(self, weights: bytes) -> None:
        self._weights = weights
        self._at = 0
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._same: dict[str, str] = {}

    def node(self, kind: str, layer: Layer, *more: str, **attributes: object) -> None:
        """Add an operator with the layer's inputs and outputs."""
        inputs = [self._same.get(blob, blob) for blob in layer.inputs]
        self._add(kind, [*inputs, *more], list(layer.outputs), **attributes)

    def alias(self, layer: Layer) -> None:
        """Let the outputs be names of the input."""
        source = self._same.get(layer.inputs[0], layer.inputs[0])
        self._same.update(dict.fromkeys(layer.outputs, source))

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        """Add a constant; half-precision numbers are widened when the network is loaded."""
        if values.dtype != np.float16:
            self._constants.append(numpy_helper.from_array(values, name))
            return name
        self._constants.append(numpy_helper.from_array(values, f"{name}.half"))
        self._add("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT)
        return name

    def tagged(self, count: int) -> NDArray[np.generic]:
        """Read numbers after a flag that gives their precision."""
        flag = int(self._take(np.dtype("<u4"), 1)[0])
        if flag == 0:
            return self.plain(count)
        if flag != _HALF_FLAG:
            raise ValueError("The weights are stored in a form that this converter does not know.")
        values = self._take(np.dtype("<f2"), count)
        self._at += -self._at % 4
        return values

    def plain(self, count: int) -> NDArray[np.generic]:
        """Read single-precision numbers."""
        return self._take(np.dtype("<f4"), count)

    def _take(self, kind: np.dtype[np.generic], count: int) -> NDArray[np.generic]:
        values = np.frombuffer(self._weights, kind, count, self._at)
        self._at += values.nbytes
        return values

    def _add(self, kind: str, inputs: list[str], outputs: list[str], **attributes: object) -> None:
        self._nodes.append(helper.make_node(kind, inputs, outputs, **attributes))

    def finish(self) -> None:
        """Raise ValueError if numbers are left, which means that a layer was read wrongly."""
        if self._at != len(self._weights):
            raise ValueError(f"{len(self._weights) - self._at} bytes of the weights are left.")

    def model(self) -> bytes:
        """Return the file."""
        picture = [1, 3, "height", "width"]
        large = [1, 3, "large_height", "large_width"]
        graph = helper.make_graph(
            self._nodes,
            "network",
            [helper.make_tensor_value_info("data", TensorProto.FLOAT, picture)],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, large)],
            self._constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version, model.producer_name = IR, "generation-gateway-models"
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString(deterministic=True))


def _convolution(network: _Network, layer: Layer) -> None:
    outputs, side, padding = layer.whole(0), layer.whole(1), layer.whole(4)
    count = layer.whole(6)
    shape = (outputs, count // (outputs * side * side), side, side)
    if math.prod(shape) != count:
        raise ValueError(f"The weights of {layer.name} have no shape.")
    more = [network.constant(f"{layer.name}.weight", network.tagged(count).reshape(shape))]
    if layer.whole(5):
        more.append(network.constant(f"{layer.name}.bias", network.plain(outputs)))
    network.node("Conv", layer, *more, kernel_shape=[side, side], pads=[padding] * 4)


def _prelu(network: _Network, layer: Layer) -> None:
    slopes = network.plain(layer.whole(0)).reshape(-1, 1, 1)
    network.node("PRelu", layer, network.constant(f"{layer.name}.slope", slopes))


def _memory(network: _Network, layer: Layer) -> None:
    shape = (1, layer.whole(2), layer.whole(1), layer.whole(0))
    network.constant(layer.outputs[0], network.plain(math.prod(shape)).reshape(shape))


def _binary(network: _Network, layer: Layer) -> None:
    more = []
    if layer.whole(1):
        number = np.float32(layer.parameters[2])
        more.append(network.constant(f"{layer.name}.number", np.asarray(number)))
    network.node(_OPERATORS[layer.whole(0)], layer, *more)


def _swish(network: _Network, layer: Layer) -> None:
    gate = f"{layer.name}.gate"
    network.node("Sigmoid", Layer("", layer.name, layer.inputs, (gate,), {}))
    network.node("Mul", layer, gate)


def _nearest(network: _Network, layer: Layer) -> None:
    if layer.whole(0) != 1:
        raise ValueError(f"{layer.name} resizes in a way that this converter does not know.")
    scales = np.asarray([1, 1, layer.parameters[1], layer.parameters[2]], np.float32)
    network.node(
        "Resize",
        layer,
        "",
        network.constant(f"{layer.name}.scales", scales),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


_WRITERS: dict[str, Callable[[_Network, Layer], None]] = {
    "Input": lambda _network, _layer: None,
    "Split": _Network.alias,
    "Convolution": _convolution,
    "PReLU": _prelu,
    "MemoryData": _memory,
    "BinaryOp": _binary,
    "Swish": _swish,
    "Sigmoid": lambda network, layer: network.node("Sigmoid", layer),
    "Concat": lambda network, layer: network.node("Concat", layer, axis=1),
    # ncnn's and PyTorch's pixel shuffle have the channel first.
    "PixelShuffle": lambda network, layer: network.node(
        "DepthToSpace", layer, blocksize=layer.whole(0), mode="CRD"
    ),
    "Interp": _nearest,
}
