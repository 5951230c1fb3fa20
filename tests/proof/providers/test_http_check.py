"""`gateway http check` against a server on this machine."""

import pytest
from click.testing import CliRunner
from http_declarations import FORM, JOB, KEY, PLAIN, answers
from werkzeug import Response

from gateway.cli import main


@pytest.fixture
def check(declared, monkeypatch):
    """Return a function that runs the command on a declaration."""

    def run(text, *options):
        declared(text)
        monkeypatch.setenv("GATEWAY_HTTP_ENDPOINTS", str(declared.folder))
        return CliRunner().invoke(main, ["http", "check", "acme", *options])

    return run


def test_a_check_shows_the_value_of_each_path(httpserver, check, tmp_path):
    answers(httpserver, {"choices": [{"text": "some\x1b[2Jwords"}]})
    out = tmp_path / "made.txt"
    found = check(PLAIN, "--out", str(out))
    assert found.exit_code == 0
    assert 'choices[0].text: "some [2Jwords"' in found.stdout
    assert "Result: text/plain, 13 characters" in found.stdout
    assert out.read_text() == "some\x1b[2Jwords"


def test_a_check_shows_what_is_not_there(httpserver, check):
    answers(httpserver, {"choices": []}, Response("voice is unknown", 400))
    found = check(PLAIN)
    assert found.exit_code == 1
    assert "choices[0].text: nothing there" in found.stdout
    assert "ResultMissing" in found.stderr
    found = check(PLAIN)
    assert "voice is unknown" in found.stdout
    assert KEY not in found.output


def test_a_check_polls_a_job(httpserver, check):
    answers(httpserver, {"id": "7"}, path="/jobs")
    answers(
        httpserver, {"state": "running", "percent": 5}, {"state": "done"},
        path="/jobs/7", method="GET",
    )  # fmt: skip
    answers(
        httpserver, Response(b"film", 200, content_type="video/mp4"),
        path="/jobs/7/content", method="GET",
    )  # fmt: skip
    found = check(JOB)
    assert found.exit_code == 0, found.output
    assert "percent: 5" in found.stdout
    assert "Result: video/mp4, 4 bytes" in found.stdout


def test_a_check_names_the_way_out_of_a_mistake(check, declared):
    assert "--file example.wav" in check(FORM).stderr
    # Another file may be wrong.
    (declared.folder / "wrong.toml").write_text("price = 2026-01-01")
    again = CliRunner().invoke(main, ["http", "check", "acme"])
    assert "--file example.wav" in again.stderr
    (declared.folder / "wrong.toml").unlink()
    other = CliRunner().invoke(main, ["http", "check", "other"])
    assert "has no file other.toml. It has: acme." in other.stderr
