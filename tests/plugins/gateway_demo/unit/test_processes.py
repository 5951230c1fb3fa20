"""The demo's child programs."""

import os

from gateway_demo.tour.processes import import_path, open_child


def test_a_file_beside_a_developers_script_hides_no_library(tmp_path):
    (tmp_path / "signal.py").write_text("raise SystemExit(77)")
    script = tmp_path / "own.py"
    script.write_text("raise SystemExit(5)")
    with (tmp_path / "log").open("wb") as log:
        environment = {**os.environ, "PYTHONPATH": import_path()}
        child = open_child([str(script)], tmp_path, environment, log)
        with child:
            assert child.wait(60) == 5
