"""The folder of outputs that tests/gateway/outputs has, for a process killed while it saves."""

from tests.gateway.outputs.conftest import folder, local

__all__ = ["folder", "local"]
