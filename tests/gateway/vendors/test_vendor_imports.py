"""The modules loaded by importing the gateway's public names."""

import ast
import subprocess
import sys


def test_importing_the_gateway_loads_no_tables_of_models_and_documents():
    code = "import sys, gateway; print([name for name in sys.modules if 'gateway_vendors' in name])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(run.stdout))
    assert not loaded & {"gateway_vendors.models", "gateway_vendors.documents"}
