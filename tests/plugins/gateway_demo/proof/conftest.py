"""The fixtures of every proof."""

from tests.proof.conftest import _forking_ends, _programs_hear_ctrl_c, key

__all__ = ["_forking_ends", "_programs_hear_ctrl_c", "key"]
