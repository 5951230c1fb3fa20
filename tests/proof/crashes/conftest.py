"""The fixture of the outputs' folder from tests/unit/outputs, for a process killed while saving."""

from tests.unit.outputs.conftest import folder, local

__all__ = ["folder", "local"]
