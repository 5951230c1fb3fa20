"""Takes ISNet out of parts, and lets it compute in single precision.

The weights stay half-precision and are widened when the network is loaded, because CPUs compute
single precision faster. Only the finest of its masks is kept.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from models.convert.ncnn import IR

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16)


def convert(*parts: bytes) -> bytes:
    """Return the network as an ONNX file."""
    model = onnx.load_model_from_string(b"".join(parts))
    graph = model.graph
    _drop_casts(graph)
    _widen(graph)
    del graph.value_info[:]
    del graph.output[1:]
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    _drop_unused(graph)
    model.ir_version, model.producer_name = max(IR, model.ir_version), "generation-gateway-models"
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _drop_casts(graph: onnx.GraphProto) -> None:
    """Remove conversions between the two precisions."""
    same: dict[str, str] = {}
    kept = []
    for node in graph.node:
        if node.op_type == "Cast" and node.attribute[0].i in _FLOATS:
            same[node.output[0]] = same.get(node.input[0], node.input[0])
        else:
            kept.append(node)
    # An output of the network keeps its name.
    named = {same[one.name]: one.name for one in graph.output if one.name in same}
    for node in kept:
        for names in (node.input, node.output):
            for at, name in enumerate(names):
                source = same.get(name, name)
                names[at] = named.get(source, source)
    del graph.node[:]
    graph.node.extend(kept)


def _widen(graph: onnx.GraphProto) -> None:
    """Widen half-precision weights by an operator, and small constants in place."""
    nodes = []
    for weights in graph.initializer:
        if weights.data_type == TensorProto.FLOAT16:
            name, weights.name = weights.name, f"{weights.name}.half"
            nodes.append(helper.make_node("Cast", [weights.name], [name], to=TensorProto.FLOAT))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "value" and attribute.t.data_type == TensorProto.FLOAT16:
                values = numpy_helper.to_array(attribute.t).astype(np.float32)
                attribute.t.CopyFrom(numpy_helper.from_array(values))
    nodes.extend(graph.node)
    del graph.node[:]
    graph.node.extend(nodes)


def _drop_unused(graph: onnx.GraphProto) -> None:
    """Remove operators and weights that the output does not need."""
    needed = {one.name for one in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    weights = [one for one in graph.initializer if one.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(weights)
