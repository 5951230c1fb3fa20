"""A command in a built root, started like the image's entrypoint."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import yaml

from tests.proof.image.build import Built

ROOT = Path(__file__).parents[3]
USER_ID = 10_001


@attrs.define(kw_only=True)
class Container:
    """A running command of an image."""

    image: Built
    process: subprocess.Popen[bytes]

    @classmethod
    def started(cls, image: Built, *command: str, **settings: str) -> "Container":
        """Start the image's command, or another one, with the rights that Compose gives it."""
        words = [*image.entrypoint, *(command or image.command)]
        compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
        rights = compose["services"]["gateway"]["cap_add"]
        entering = image.root.serving(*words, workdir=image.workdir, rights=rights)
        return cls(
            image=image,
            process=subprocess.Popen(entering, env={**image.environment, **settings}),
        )

    def processes(self) -> Iterator[Path]:
        """Return the folders in /proc of the processes in the root."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                root = (process / "root").readlink()
            except OSError:
                # It has exited.
                continue
            if root == self.image.root.folder:
                yield process

    def first_process(self) -> Path:
        """Return the container's process 1."""
        return next(one for one in self.processes() if _status(one, "NSpid")[-1] == "1")

    def users(self) -> set[int]:
        """Return the users of the container's processes."""
        return {int(_status(one, "Uid")[0]) for one in self.processes()}

    def may_gain_rights(self) -> bool:
        """Return whether a set-user-id program would give its rights to one of the processes."""
        return any(_status(one, "NoNewPrivs") != ["1"] for one in self.processes())

    def stopped(self, patience_s: float) -> int:
        """Send the image's stop signal and return the exit code."""
        first = int(self.first_process().name)
        os.kill(first, signal.Signals[self.image.stop_signal])
        return self.process.wait(patience_s)

    def ended(self, patience_s: float) -> int:
        """Wait until the command exits and return its exit code."""
        return self.process.wait(patience_s)


def _status(process: Path, name: str) -> list[str]:
    lines = (process / "status").read_text("utf-8").splitlines()
    return next(line.split()[1:] for line in lines if line.startswith(f"{name}:"))
