"""docs/prose.py, in a small repository of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "docs/prose.py"
GOOD = "The worker leases a task and renews the lease.\n"
RIDDLE = "Nobody looks at what is told by strangers.\n"


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "docs").mkdir()
    shutil.copy(SCRIPT, tmp_path / "docs")
    (tmp_path / "page.md").write_text(GOOD * 3000)
    _git(tmp_path, "init", "--quiet")
    _commit(tmp_path)
    (tmp_path / "second.md").write_text(GOOD)
    _commit(tmp_path)
    _git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    return tmp_path


def _git(folder, *args):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", folder, *identity, *args], check=True)


def _commit(folder):
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "page: add text")


def _check(folder, *args):
    return subprocess.run(
        [sys.executable, folder / "docs/prose.py", *args],
        capture_output=True,
        text=True,
        check=False,
    )


def test_plain_text_passes(repository):
    done = _check(repository)
    assert done.returncode == 0, done.stdout


def test_a_changed_page_above_a_goal_fails_with_the_place(repository):
    (repository / "second.md").write_text(GOOD + RIDDLE * 2)
    done = _check(repository)
    assert done.returncode == 1
    assert "second.md:2: nobody: Nobody looks at" in done.stdout
    assert "page.md" not in done.stdout


def test_committed_changes_count_until_they_land(repository):
    (repository / "second.md").write_text(GOOD + RIDDLE * 2)
    _commit(repository)
    assert _check(repository).returncode == 1
    _git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert _check(repository).returncode == 0


def test_without_a_remote_the_last_commit_is_no_measure(repository):
    """A checkout of one branch passes or fails as a clone does, whatever its last commit was."""
    (repository / "second.md").write_text(GOOD + RIDDLE * 2)
    _commit(repository)
    _git(repository, "update-ref", "-d", "refs/remotes/origin/main")
    done = _check(repository)
    assert done.returncode == 0, done.stdout


def test_an_unchanged_page_above_a_goal_fails(repository):
    (repository / "page.md").write_text(GOOD + RIDDLE * 9)
    _commit(repository)
    (repository / "second.md").write_text(GOOD * 2)
    _commit(repository)
    done = _check(repository)
    assert done.returncode == 1
    assert "pages: stranger: 9 in" in done.stdout


def test_one_use_in_a_long_text_passes(repository):
    (repository / "page.md").write_text(
        GOOD * 200 + "Look at the page in a browser.\n" + GOOD * 200
    )
    assert _check(repository).returncode == 0


@pytest.mark.parametrize(
    "code",
    ['"""Nobody knows."""\n', "x = 1\n# Nobody knows.\n", 'def f():\n    """Nobody knows."""\n'],
)
def test_docstrings_and_comments_count(repository, code):
    (repository / "module.py").write_text(code)
    _git(repository, "add", "module.py")
    done = _check(repository, "--places", "module.py")
    assert "nobody: Nobody knows." in done.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("module.py", 'x = "Nobody knows."\n'),
        ("code.md", "```\nNobody knows.\n```\n"),
        ("name.md", "The field `nobody` is `Nobody`.\n"),
    ],
)
def test_strings_and_code_blocks_do_not_count(repository, name, text):
    (repository / name).write_text(text)
    _git(repository, "add", name)
    assert _check(repository, "--places", name).stdout == ""
