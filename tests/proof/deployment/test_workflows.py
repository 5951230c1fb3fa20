"""GitHub's workflows: pinned, without unneeded rights, and complete."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text("utf-8"))


def jobs(path: Path) -> dict[str, dict]:
    return read(path)["jobs"]


def steps(path: Path) -> Iterator[dict]:
    for job in jobs(path).values():
        yield from job["steps"]


def test_one_tests_one_releases_and_one_asks_the_vendors_clients():
    assert [path.stem for path in WORKFLOWS] == ["release", "test", "vendors"]


@every_workflow
def test_every_action_is_pinned_by_a_commit_and_names_its_version(path):
    lines = [line for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_one_action_has_one_commit():
    pins = re.findall(r"uses: (\S+)@(\S+)", "".join(one.read_text("utf-8") for one in WORKFLOWS))
    assert len(dict(pins)) == len(set(pins))


@every_workflow
def test_a_job_may_write_nothing_unless_it_says_so(path):
    assert read(path)["permissions"] == {"contents": "read"}
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_tests_have_no_right_to_write_and_no_secrets():
    tests = ROOT / ".github" / "workflows" / "test.yml"
    assert not [job for job in jobs(tests).values() if "permissions" in job]
    assert "secrets." not in tests.read_text("utf-8")


@every_workflow
def test_no_script_has_a_strangers_words_pasted_into_it(path):
    """A branch or tag name may contain a command: scripts get names by the environment."""
    for step in steps(path):
        assert "${{" not in step.get("run", "")


@every_workflow
def test_every_job_ends_by_itself(path):
    assert all(job["timeout-minutes"] <= 120 for job in jobs(path).values())


@every_workflow
def test_every_target_of_make_is_there(path):
    named = {
        word
        for step in steps(path)
        for line in re.findall(r"\bmake ([^\n]+)", step.get("run", ""))
        for word in line.split()
        if "=" not in word
    }
    for target in named:
        asked = ["make", "--question", "--dry-run", "--directory", ROOT, target]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert "No rule" not in answer.stderr


def test_the_tests_run_on_every_python_that_we_name():
    matrix = jobs(ROOT / ".github/workflows/test.yml")["test"]["strategy"]["matrix"]
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: 3." in line]
    assert matrix["python"] == named


def test_a_release_says_what_its_section_of_the_changelog_says(tmp_path):
    release = jobs(ROOT / ".github/workflows/release.yml")["release"]
    script = release["steps"][-1]["run"].partition("(cd released")[0]
    sections = [
        "## [Unreleased]",
        "Later.",
        "## [1.2.3] - 2026-01-02",
        "New.",
        "## [1.2.2]",
        "Old.",
    ]
    (tmp_path / "CHANGELOG.md").write_text("\n".join(["# Changelog", *sections]))
    settings = {"TAG": "v1.2.3", "PATH": "/usr/bin:/bin"}
    subprocess.run(["bash", "-ec", script], env=settings, cwd=tmp_path, check=True)
    assert (tmp_path / "notes.md").read_text() == "New.\n"


def test_a_release_wants_the_tag_in_the_code_and_in_the_changelog(tmp_path):
    wheel = jobs(ROOT / ".github/workflows/release.yml")["wheel"]
    (script,) = [step["run"] for step in wheel["steps"] if "TAG" in step.get("env", {})]
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "version.py").write_text('VERSION = "1.2.3"\n')
    changelog = tmp_path / "CHANGELOG.md"

    def code(tag: str) -> int:
        settings = {"TAG": tag, "PATH": "/usr/bin:/bin"}
        command = ["bash", "-ec", script]
        return subprocess.run(command, env=settings, cwd=tmp_path, check=False).returncode

    changelog.write_text("## [Unreleased]\n")
    assert code("v1.2.3") != 0
    changelog.write_text("## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n")
    assert code("v1.2.3") == 0
    assert code("v1.2.4") != 0
