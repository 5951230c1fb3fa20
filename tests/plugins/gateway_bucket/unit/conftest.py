"""Settings are read here without other tools' keys."""

from tests.unit.outputs.conftest import _no_keys_of_others

__all__ = ["_no_keys_of_others"]
