"""Settings are read here without the keys of other tools."""

from tests.unit.outputs.conftest import _no_keys_of_others

__all__ = ["_no_keys_of_others"]
