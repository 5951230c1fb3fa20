"""The watchdog's thread always ends with the process."""

import subprocess
import sys
import textwrap

import pytest


@pytest.mark.full
@pytest.mark.parametrize(
    ("run", "wait_s"),
    [
        ("asyncio.run(main())", 0),
        ("asyncio.run(main())", 2),
        ("asyncio.new_event_loop().run_until_complete(main())", 0),
    ],
    ids=["at once", "after the loop was closed", "with a loop that nobody closes"],
)
def test_it_never_keeps_the_process_alive(run, wait_s):
    script = f"""
        import asyncio, time
        from gateway.catalog.watchdog import Watchdog

        async def main():
            Watchdog({{}}).start()

        {run}
        time.sleep({wait_s})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == b""
