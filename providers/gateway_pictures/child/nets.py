"""Loads a network before the fork."""

from pathlib import Path
from typing import Any

import onnxruntime
from numpy.typing import NDArray

# Of 32 bits, from 0 to 1 or as a network has them.
Floats = NDArray[Any]


class Net:
    """A network with one input and one output."""

    def __init__(self, path: Path, *, has_arena: bool) -> None:
        options = onnxruntime.SessionOptions()
        # Threads would not survive the fork.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # An arena is faster for many inputs of one size, but its memory is never freed.
        options.enable_cpu_mem_arena = options.enable_mem_pattern = has_arena
        options.log_severity_level = 4
        self._session: Any = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"]
        )
        self._input = self._session.get_inputs()[0].name
        self._output = self._session.get_outputs()[0].name

    def run(self, values: Floats) -> Floats:
        """Return the output for an input."""
        (made,) = self._session.run([self._output], {self._input: values})
        result: Floats = made
        return result
