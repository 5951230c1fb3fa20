"""Serves the gateway of `gateway plugins dev`, which starts this again after each change.

python -m gateway_demo.rehearsal.serving STAGE: the file has the fields of a `Stage` as JSON.
"""

import sys
from pathlib import Path

from gateway.app import create_app
from gateway.cli.addresses import print_addresses
from gateway.cli.terminal import one_sentence
from gateway.telemetry.log_queue import queued_output
from gateway.web.server.hangups import held_hangups
from gateway.web.server.serve import serve
from gateway_demo.rehearsal.stage import Stage


@queued_output()
@one_sentence
def main() -> None:
    """Serve until SIGTERM."""
    stage = Stage.from_json(Path(sys.argv[1]).read_text())
    with held_hangups() as hangups:
        serve(stage.load_settings(), create_app, print_addresses, hangups)


if __name__ == "__main__":
    main()
