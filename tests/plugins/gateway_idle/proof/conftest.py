"""A gateway in a process of its own."""

from tests.proof.conftest import _programs_hear_ctrl_c, key
from tests.proof.process.conftest import served

__all__ = ["_programs_hear_ctrl_c", "key", "served"]
