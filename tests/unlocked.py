"""Installs the gateway without the lock and tests it: `make newest` and `make oldest`.

Each Python gets a temporary environment with the newest or the lowest versions that pyproject.toml
admits. Then the unit tests run, `gateway demo` runs to its end, and `gateway buy` buys from it.
CONTRIBUTING.md explains what to do if one of them fails.
"""

import argparse
import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESOLUTIONS = {"newest": "highest", "oldest": "lowest-direct"}
# The part of the extra `dev` that the unit tests need; the rest are tools.
TEST_TOOLS = ("h11", "hypothesis", "pytest-xdist", "x402")
NO_EXTRAS = ("dev",)
PATIENCE_S = 900


class Failed(Exception):
    """A step failed; its output has been printed."""


def main() -> int:
    """Try every Python; return 1 if one failed."""
    options = _read_options()
    pythons = find_pythons(options.pythons)
    if not pythons:
        raise SystemExit("No Python of pyproject.toml's range was found.")
    failed = [python for python in pythons if not _try(options, python)]
    for python in failed:
        _say(f"{options.which} versions failed on {python}: see CONTRIBUTING.md, Versions.")
    return 1 if failed else 0


def _say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=RESOLUTIONS)
    parser.add_argument("pythons", nargs="*", help="such as python3.13; without it, all there are")
    parser.add_argument("--uv", default="uv", help="the program uv")
    parser.add_argument("--jobs", default="2", help="processes of the unit tests")
    parser.add_argument("--sale-only", action="store_true", help="without the unit tests")
    return parser.parse_args()


def find_pythons(names: Sequence[str]) -> list[str]:
    """Return the paths of Pythons that run: the named ones, or one of each admitted version."""
    found = {name: _find_python(name) for name in names or _admitted_pythons(_project())}
    for name in names:
        if found[name] is None:
            raise SystemExit(f"{name} was not found, or does not run.")
    return [path for path in found.values() if path is not None]


def _project() -> Mapping[str, object]:
    project: Mapping[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def _admitted_pythons(project: Mapping[str, object]) -> list[str]:
    oldest, end = re.findall(r"3\.(\d+)", str(project["requires-python"]))
    return [f"python3.{minor}" for minor in range(int(oldest), int(end))]


def _find_python(name: str) -> str | None:
    """Return the path of a Python on PATH or among pyenv's; a shim of pyenv may not run."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    paths = [shutil.which(name), *sorted(pyenv.glob(f"versions/*/bin/{name}"), reverse=True)]
    for path in filter(None, paths):
        if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(path)
    return None


def requirements(project: Mapping[str, object]) -> list[str]:
    """Return the packages to install:

    the gateway with its extras, and the tools of the unit tests.
    """
    extras: Mapping[str, Sequence[str]] = project["optional-dependencies"]  # type: ignore[assignment]
    chosen = ",".join(name for name in extras if name not in NO_EXTRAS)
    tools = [line for line in extras["dev"] if re.split("[^a-z0-9-]", line)[0] in TEST_TOOLS]
    return [f".[{chosen}]", *tools]


def _try(options: argparse.Namespace, python: str) -> bool:
    """Install and run everything with one Python; return whether all succeeded."""
    _say(f"\n{options.which} versions on {python}")
    with tempfile.TemporaryDirectory(prefix=f"gateway-{options.which}-") as folder:
        place = Path(folder)
        try:
            with _timed("install"):
                _install(options, python, place / "env")
            if not options.sale_only:
                _test(options, place / "env/bin/python")
            with _timed("demo and sale"):
                _demonstrate(place / "env/bin/gateway", place)
        except Failed as failure:
            _say(failure)
            _print_versions(options, place / "env")
            return False
    return True


@contextlib.contextmanager
def _timed(step: str) -> Iterator[None]:
    """Print the wall and CPU time of a step."""
    began_s, began_cpu_s = time.monotonic(), _cpu_s()
    try:
        yield
    finally:
        wall_s, cpu_s = time.monotonic() - began_s, _cpu_s() - began_cpu_s
        _say(f"{step}: {wall_s:.0f} s, {cpu_s:.0f} s of CPU")


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _install(options: argparse.Namespace, python: str, env: Path) -> None:
    _run([options.uv, "venv", "--quiet", "--python", python, env], ROOT)
    # A user's machine may have no compiler, so a version without a wheel is not admitted.
    wheels = ["--only-binary", ":all:", "--no-binary", "generation-gateway"]
    _run(
        [
            *(options.uv, "pip", "install", "--quiet", "--python", env / "bin/python"),
            *("--resolution", RESOLUTIONS[options.which], *wheels),
            *requirements(_project()),
        ],
        ROOT,
    )


def _test(options: argparse.Namespace, python: Path) -> None:
    with _timed("unit tests"):
        tests = ["-m", "pytest", "-q", "-n", options.jobs, "-p", "no:cacheprovider"]
        _run([python, *tests, "tests/unit"], ROOT)


def _demonstrate(gateway: Path, folder: Path) -> None:
    """Run the demo's purchases, and buy from it once more while it serves."""
    ports = ["--port", "0", "--rpc-port", "0", "--output", str(folder / "demo")]
    with subprocess.Popen(
        [gateway, "demo", *ports],
        cwd=folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as demo:
        timer = threading.Timer(PATIENCE_S, demo.kill)
        timer.start()
        try:
            url = _wait_until_it_serves(demo)
            order = ["sandbox-image", "a quiet lake", "--key", "demo", "--yes", "--out", "bought"]
            _run([gateway, "buy", *order, "--url", url], folder)
        finally:
            # A shell lets background jobs ignore SIGINT.
            demo.terminate()
            rest = demo.communicate()[0]
            timer.cancel()
        if demo.returncode != 0:
            raise Failed(f"The demo ended with {demo.returncode}.\n{rest}")


def _wait_until_it_serves(demo: "subprocess.Popen[str]") -> str:
    """Return the URL that the demo serves after its purchases."""
    output = ""
    for line in demo.stdout or ():
        output += line
        if line.startswith("Serving"):
            break
    url = re.search(r"URL +(http://127\.0\.0\.1:\d+)", output)
    if url is None or "Serving" not in output:
        raise Failed(f"The demo did not come to its end.\n{output}")
    return url[1]


def _run(command: Sequence[str | Path], folder: Path) -> None:
    """Run a command in a folder; raises `Failed` unless it succeeds."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=_environment(),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}\n{done.stdout}")


def _environment() -> dict[str, str]:
    """Return the environment without variables that affect the gateway or Python's imports."""
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    return {name: value for name, value in kept.items() if name not in left_out}


def _print_versions(options: argparse.Namespace, env: Path) -> None:
    """Print each installed version that differs from the lock's: one of them is the cause."""
    freeze = [options.uv, "pip", "freeze", "--quiet", "--python", env / "bin/python"]
    installed = subprocess.run(freeze, capture_output=True, check=False, text=True).stdout
    locked = versions_of((ROOT / "constraints.txt").read_text())
    for name, version in versions_of(installed).items():
        if locked.get(name) not in (None, version):
            _say(f"{name} {version}, locked is {locked[name]}")


def versions_of(text: str) -> dict[str, str]:
    """Return the versions of a list of requirements by name."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", text, re.MULTILINE))


if __name__ == "__main__":
    sys.exit(main())
