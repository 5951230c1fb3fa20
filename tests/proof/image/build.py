"""Runs the stages of a Dockerfile in clean roots and returns the last one."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs
import click

from tests.proof.image.clean_root import PATH, CleanRoot
from tests.proof.image.dockerfile import Instruction, Stage, filled, ignore_patterns, ignored

_WHEELS = "/var/tmp/wheels"
# pip finds only the wheels that were downloaded before.
_OFFLINE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": _WHEELS, "HOME": "/root"}


@attrs.define(kw_only=True)
class Built:
    """A finished stage: its root, and the start parameters of its containers."""

    root: CleanRoot
    environment: dict[str, str]
    workdir: str = "/"
    entrypoint: list[str] = attrs.Factory(list)
    command: list[str] = attrs.Factory(list)
    stop_signal: str = "SIGTERM"


@attrs.define(kw_only=True)
class Build:
    """One run of `docker build`, without Docker: the checkout, the base and the arguments."""

    checkout: Path
    base: CleanRoot
    wheels: Path
    folder: Path
    arguments: dict[str, str]
    done: dict[str, Built] = attrs.Factory(dict)

    def run(self, stages: list[Stage]) -> Built:
        """Run every stage in order and return the last one."""
        for number, stage in enumerate(stages):
            name = stage.name or f"stage-{number}"
            self.done[name] = self._stage(stage, self.folder / name)
        return self.done[name]

    def _stage(self, stage: Stage, folder: Path) -> Built:
        built = Built(root=self.base.copied(folder), environment={"PATH": PATH})
        variables: dict[str, str] = {}
        for one in stage.instructions:
            click.echo(f"{one.keyword} {one.text[:90]}")
            self._follow(one, built, variables)
        return built

    def _follow(self, one: Instruction, built: Built, arguments: dict[str, str]) -> None:
        known = {**arguments, **built.environment}
        match one.keyword:
            case "ARG":
                name, _, default = one.text.partition("=")
                arguments[name] = self.arguments.get(name, filled(default, known))
            case "ENV":
                built.environment |= one.pairs(known)
            case "WORKDIR":
                built.workdir = filled(one.text, known)
                built.root.inside(built.workdir).mkdir(parents=True, exist_ok=True)
            case "RUN":
                self._run(one.text, built, known)
            case "COPY":
                self._copy(one, built, known)
            case "ENTRYPOINT":
                built.entrypoint = one.command
            case "CMD":
                built.command = one.command
            case "STOPSIGNAL":
                built.stop_signal = one.text

    def _run(self, script: str, built: Built, variables: Mapping[str, str]) -> None:
        seen = built.root.inside(_WHEELS)
        shutil.copytree(self.wheels, seen, copy_function=_linked)
        shell = ("/bin/sh", "-e", "-c", script)
        built.root.run(*shell, variables={**variables, **_OFFLINE}, workdir=built.workdir)
        shutil.rmtree(seen)

    def _copy(self, one: Instruction, built: Built, variables: Mapping[str, str]) -> None:
        *sources, target = (filled(word, variables) for word in one.arguments)
        into = built.root.inside(str(Path(built.workdir, target)))
        is_folder = target.endswith("/") or len(sources) > 1
        for source in sources:
            if "from" in one.flags:
                here = self.done[one.flags["from"]].root.inside(source)
                subprocess.run(["cp", "--archive", "--no-target-directory", here, into], check=True)
            else:
                self._copy_of_checkout(source, into / Path(source).name if is_folder else into)
        if mode := one.flags.get("chmod"):
            into.chmod(int(mode, 8))

    def _copy_of_checkout(self, source: str, into: Path) -> None:
        patterns = ignore_patterns((self.checkout / ".dockerignore").read_text("utf-8"))
        here = self.checkout / source
        files = [one for one in here.rglob("*") if one.is_file()] if here.is_dir() else [here]
        for file in files:
            if ignored(str(file.relative_to(self.checkout)), patterns):
                continue
            copy = into / file.relative_to(here) if here.is_dir() else into
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)


def _linked(source: str, target: str) -> None:
    Path(target).hardlink_to(source)
