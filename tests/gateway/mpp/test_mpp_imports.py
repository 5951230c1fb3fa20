"""The plugin's imports if the operator has not enabled it."""

import ast
import subprocess
import sys

import pytest

_PROGRAM = """
import sys
from pathlib import Path
from gateway.plugins.manager import PluginManager
from gateway_testing.fakes.chain import FakeChain, context_of
context = context_of(FakeChain(), Path("."), {"mpp_enabled": ENABLED})
found = PluginManager().ways_to_pay(context)[0]
print([len(found), *(name for name in sys.modules if name.startswith("gateway_mpp."))])
"""


def _loaded(enabled: str) -> list:
    program = _PROGRAM.replace("ENABLED", enabled)
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return ast.literal_eval(run.stdout)


@pytest.mark.full
def test_nothing_of_it_is_loaded_while_it_is_off():
    assert _loaded("False") == [1]
    assert _loaded("True")[0] == 2
