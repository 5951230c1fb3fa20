"""Fixtures of every proof. The process that forks ends at exit: other tests may still use it."""

from tests.proof.conftest import _programs_hear_ctrl_c, key

__all__ = ["_programs_hear_ctrl_c", "key"]
