"""The Dockerfile as parsed by `make image-check`, and the files that .dockerignore lets in."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.proof.image.container import USER_ID
from tests.proof.image.dockerfile import (
    UnknownInstruction,
    filled,
    ignore_patterns,
    ignored,
    instructions,
    stages,
)

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
PATTERNS = ignore_patterns((ROOT / ".dockerignore").read_text("utf-8"))


def texts(keyword: str) -> list[str]:
    return [one.text for one in instructions(DOCKERFILE) if one.keyword == keyword]


def test_the_image_is_run_by_what_the_check_runs_it_by():
    defaults, (build, run) = stages(DOCKERFILE)
    assert defaults["BASE"].startswith("python:3.")
    assert (build.name, filled(build.base, defaults)) == ("build", defaults["BASE"])
    last = {one.keyword: one for one in run.instructions}
    assert last["ENTRYPOINT"].command == ["entrypoint"]
    assert last["CMD"].command == ["gateway", "serve"]
    assert last["ENV"].pairs({"PATH": "/bin"})["PATH"] == "/venv/bin:/bin"
    assert f"--uid {USER_ID} " in last["RUN"].text


def test_an_instruction_that_the_check_does_not_know_is_named():
    with pytest.raises(UnknownInstruction, match="HEALTHCHECK"):
        instructions("FROM x\nHEALTHCHECK CMD true")


def test_nothing_in_it_depends_on_the_day_it_is_built():
    pips = [part for text in texts("RUN") for part in text.split("&&") if "pip" in part]
    assert all("--no-cache-dir" in part for part in pips if " install " in part)
    assert all("--no-compile" in part for part in pips if " install " in part)
    assert re.search(r"compileall .*--invalidation-mode unchecked-hash", DOCKERFILE)
    assert "ARG SOURCE_DATE_EPOCH=" in DOCKERFILE


def test_packages_are_pruned_before_their_bytecode_is_made():
    """The pruned files include a module that no Python 3 compiles."""
    (packages,) = [text for text in texts("RUN") if "prune.py" in text]
    assert "-r deploy/${LOCK}.txt" in packages.partition("prune.py")[0]
    assert "compileall" in packages.partition("prune.py")[2]


def test_the_gateway_is_a_layer_above_its_packages():
    copied = [one for one in texts("COPY") if one.startswith("--from=build")]
    assert copied == ["--from=build /venv /venv", "--from=build /gateway/venv /venv"]


@pytest.mark.parametrize(
    ("path", "is_out"),
    [
        ("gateway/app.py", False),
        ("deploy/entrypoint.sh", False),
        ("gateway/web/__pycache__/app.pyc", True),
        ("tests/conftest.py", True),
        (".env", True),
        ("gateway.toml", True),
        ("deploy/compose.yaml", True),
    ],
)
def test_the_build_sees_the_program_and_nothing_of_the_operators(path, is_out):
    assert ignored(path, PATTERNS) == is_out


def test_everything_that_is_copied_is_let_in_for_each_list():
    locks = [one.stem for one in (ROOT / "deploy").glob("image*.txt")]
    assert {"image", "image-ocr", "image-demo", "image-build"} == set(locks)
    for one in instructions(DOCKERFILE):
        if one.keyword != "COPY" or "from" in one.flags:
            continue
        for source in one.arguments[:-1]:
            for lock in locks:
                path = filled(source, {"LOCK": lock})
                assert (ROOT / path).exists()
                assert not ignored(path, PATTERNS)


def test_the_base_is_a_python_that_we_name():
    (wanted,) = re.findall(r"python:3\.(\d+)", stages(DOCKERFILE)[0]["BASE"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"Programming Language :: Python :: 3.{wanted}" in project["classifiers"]
