"""The folder of outputs that tests/unit/outputs has, for a process killed while it saves."""

from tests.unit.outputs.conftest import folder, local

__all__ = ["folder", "local"]
