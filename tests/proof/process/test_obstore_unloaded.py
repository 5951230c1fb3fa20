"""A gateway with outputs on disk spends no memory on buckets."""

import subprocess
import sys


def test_a_gateway_that_keeps_outputs_on_the_disk_never_loads_obstore():
    code = "import sys, gateway.outputs; sys.exit('obstore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
