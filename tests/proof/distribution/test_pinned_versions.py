"""The pinned versions: where they install, their purposes, and that all have hashes."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import attrs
import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")
# Built into newer Pythons: `asyncio.timeout` as in 3.11.3, for redis; for keyring those of 3.12.
BACKPORTS = {"async-timeout", "backports-tarfile", "importlib-metadata", "lazy-importer", "zipp"}
# vyper with its dependencies, and coincurve, which is optional for eth_keys.
WITHOUT_WHEELS = {"asttokens", "coincurve", "immutables", "lark", "vyper", "wheel"}
# The last two are built by `make models` and `make models-large`, and depend on nothing else.
OURS = {
    PROJECT["name"],
    "generation-gateway-models",
    "generation-gateway-models-large",
}
# No image has these: rich colours source code with it, and the gateway prints none.
LEFT_OUT = {"pygments"}
LISTS = {
    "constraints.txt": [f"{PROJECT['name']}[{','.join(EXTRAS)}]"],
    "deploy/image.txt": [f"{PROJECT['name']}[alarms,facilitator,fast,mcp,passkeys,postgres,redis]"],
    "deploy/image-ocr.txt": [
        f"{PROJECT['name']}[alarms,facilitator,fast,mcp,ocr,passkeys,postgres,redis]"
    ],
    "deploy/image-demo.txt": [
        f"{PROJECT['name']}[alarms,demo,facilitator,fast,mcp,passkeys,postgres,redis]"
    ],
    "deploy/demo.txt": [
        f"{PROJECT['name']}[alarms,demo,mcp,passkeys,wallet]",
        *PYPROJECT["dependency-groups"]["editable"],
    ],
    "deploy/image-build.txt": PYPROJECT["build-system"]["requires"],
}


@attrs.frozen
class Pin:
    """One line of a list: a version, its environment marker, and its hashes."""

    requirement: Requirement
    hashes: frozenset[str]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        return str(self.requirement.specifier).removeprefix("==")

    def is_for(self, python: str | None = None) -> bool:
        """Return whether it is installed on this platform, by this or another Python."""
        environment = dict(default_environment())
        if python:
            minor = python.rpartition(".")[0]
            environment |= {"python_full_version": python, "python_version": minor}
        return self.requirement.marker is None or self.requirement.marker.evaluate(environment)


def pins(name: str) -> list[Pin]:
    text = (ROOT / name).read_text("utf-8").replace("\\\n", " ")
    stripped = (line.strip() for line in text.splitlines())
    lines = [line for line in stripped if line and not line.startswith("#")]
    split = [line.split("--hash=") for line in lines]
    return [Pin(Requirement(first), frozenset(map(str.strip, rest))) for first, *rest in split]


def asked_by(name: str) -> list[Requirement]:
    """Return the dependencies of a distribution; ours as in pyproject.toml."""
    if name not in OURS:
        return [Requirement(line) for line in importlib.metadata.requires(name) or ()]
    if name != PROJECT["name"]:
        return []
    mine = [Requirement(line) for line in PROJECT["dependencies"]]
    for extra, lines in EXTRAS.items():
        for line in lines:
            requirement, _, marker = line.partition(";")
            both = f"({marker}) and " if marker else ""
            mine.append(Requirement(f"{requirement}; {both}extra == '{extra}'"))
    return mine


def needed(lines: list[str]) -> list[Requirement]:
    """Return all transitive requirements, on this platform and Python."""
    found, seen, waiting = [], set(), [Requirement(line) for line in lines]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        found.append(requirement)
        for extra in {"", *requirement.extras} - {e for n, e in seen if n == name}:
            seen.add((name, extra))
            waiting += [
                one
                for one in asked_by(name)
                if one.marker is None or one.marker.evaluate({"extra": extra})
            ]
    return [one for one in found if canonicalize_name(one.name) not in OURS]


@pytest.mark.parametrize("python", PYTHONS)
def test_every_pinned_version_admits_each_python_we_name(python):
    refusals = []
    meant = [pin for pin in pins("constraints.txt") if pin.is_for(python) and pin.is_for()]
    for pin in meant:
        admits = importlib.metadata.metadata(pin.name).get("Requires-Python") or ""
        if not SpecifierSet(admits).contains(python):
            refusals.append(f"{pin.requirement} wants Python {admits}")
    assert refusals == []
    assert len(meant) > 100


def test_one_version_of_everything_serves_all_pythons():
    """So other Pythons install the versions that were tested on one."""
    chosen = [
        {pin.name: pin.version for pin in pins("constraints.txt") if pin.is_for(python)}
        for python in PYTHONS
    ]
    everywhere = {name: version for of_one in chosen for name, version in of_one.items()}
    assert all(of_one.items() <= everywhere.items() for of_one in chosen)
    missing = set(everywhere) - set.intersection(*map(set, chosen))
    assert missing <= BACKPORTS | WITHOUT_WHEELS


def test_the_pythons_we_name_are_those_that_pyproject_admits():
    admitted = SpecifierSet(PROJECT["requires-python"])
    named = {f"3.{minor}.0" for minor in range(8, 30) if admitted.contains(f"3.{minor}.0")}
    assert named == set(PYTHONS)


def test_what_is_installed_is_what_is_pinned():
    differing = {
        pin.name: (installed, pin.version)
        for pin in pins("constraints.txt")
        if pin.is_for() and (installed := importlib.metadata.version(pin.name)) != pin.version
    }
    assert differing == {}, "run `make install`"


@pytest.mark.parametrize("name", LISTS)
def test_a_list_holds_what_pyproject_asks_for_and_nothing_else(name):
    pinned = {pin.name: pin.version for pin in pins(name) if pin.is_for()}
    left_out = LEFT_OUT if name.startswith("deploy/image") else set()
    asked = [one for one in needed(LISTS[name]) if canonicalize_name(one.name) not in left_out]
    assert set(pinned) == {canonicalize_name(one.name) for one in asked}, "run `make lock`"
    unfit = [
        f"{one} is pinned to {pinned[canonicalize_name(one.name)]}"
        for one in asked
        if not one.specifier.contains(pinned[canonicalize_name(one.name)], prereleases=True)
    ]
    assert unfit == []


def test_without_ocr_the_image_has_no_libraries_of_neural_networks():
    assert not {"onnxruntime", "numpy", "protobuf"} & {pin.name for pin in pins("deploy/image.txt")}
    assert "onnxruntime" in {pin.name for pin in pins("deploy/image-ocr.txt")}


def test_the_image_is_built_with_what_the_build_system_asks_for():
    assert PYPROJECT["dependency-groups"]["image-build"] == PYPROJECT["build-system"]["requires"]


@pytest.mark.parametrize("name", LISTS)
def test_every_list_has_the_same_versions_and_their_hashes(name):
    everything = {(pin.name, pin.version): pin.hashes for pin in pins("constraints.txt")}
    for pin in pins(name):
        assert pin.hashes == everything[pin.name, pin.version]
        assert pin.hashes
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in pin.hashes)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_names_no_package_index(name):
    assert "://" not in (ROOT / name).read_text("utf-8")


def test_an_editable_install_needs_what_the_tools_name():
    assert set(PYPROJECT["dependency-groups"]["editable"]) <= set(EXTRAS["dev"])


def test_the_demo_is_light():
    tools = {"mypy", "moto", "botocore", "onnxruntime", "numpy", "selenium", "vyper", "pytest"}
    assert not tools & {pin.name for pin in pins("deploy/demo.txt")}


def make(*arguments: str | Path, goal: str = "install") -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    command = ["make", "--directory", ROOT, goal, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_demo_takes_the_developers_environment_if_there_is_one(tmp_path):
    venv = tmp_path / "venv"
    alone = make("--dry-run", f"VENV={venv}", goal="demo").stdout
    assert "deploy/demo.txt" in alone
    assert "constraints.txt" not in alone
    venv.mkdir()
    (venv / ".installed").touch()
    beside = make("--dry-run", f"VENV={venv}", goal="demo").stdout
    assert f"{venv}/bin/gateway demo" in beside
    assert "pip" not in beside


@pytest.mark.parametrize("goal", ["install", "demo"])
def test_nothing_is_fetched_without_its_hash(tmp_path, goal):
    recipe = make("--dry-run", f"VENV={tmp_path}/venv", goal=goal).stdout.replace("||", "\n")
    image = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ").replace("&&", "\n")
    for text, steps in ((recipe, 4), (image, 4)):
        pips = [
            line
            for line in text.splitlines()
            if re.search(r"\bpip (--python \S+ )?(install|wheel)\b", line)
        ]
        assert len(pips) == steps
        for line in pips:
            is_local = "--no-index" in line or "--no-build-isolation" in line
            assert "--no-deps" in line
            assert "--require-hashes" in line or is_local


def pretender(folder: Path, change: str) -> Path:
    """Return a Python that first changes itself, and then runs a script."""
    stub = folder / "python"
    run = "sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
    code = f"import runpy, sys; {change}; {run}"
    stub.write_text(f'#!/bin/sh\nexec \'{sys.executable}\' -c "{code}" "$@"\n')
    stub.chmod(0o755)
    return stub


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            "sys.version_info = (3, 9, 18)",
            "Name one that you have, for example: make {goal} PYTHON=python3.11",
        ),
        (
            "sys.version_info = (3, 9, 18)",
            "Python 3.9.18 is too old: the gateway needs Python 3.11 to 3.14.",
        ),
        ("sys.version_info = (3, 15, 0)", "Python 3.15.0 is too new: the gateway needs"),
        ("sys.modules['ensurepip'] = None", "apt-get install python3-venv; then run make again."),
    ],
)
@pytest.mark.parametrize("goal", ["install", "demo"])
def test_the_install_says_in_one_sentence_what_is_wrong_with_a_python(
    tmp_path, change, sentence, goal
):
    venv = tmp_path / "venv"
    refused = make(f"PYTHON={pretender(tmp_path, change)}", f"VENV={venv}", goal=goal)
    assert refused.returncode != 0
    stderr_lines, makes_own = refused.stderr.splitlines()
    assert sentence.format(goal=goal) in stderr_lines
    assert makes_own.startswith("make: ***")
    assert not venv.exists()
