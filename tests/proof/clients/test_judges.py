"""The table of judges, with judges that need no installation."""

import pytest
from click.testing import CliRunner

from tests.proof.clients.judges import rows
from tests.proof.clients.judges.__main__ import main
from tests.proof.clients.judges.rows import Judge
from tests.proof.clients.rows import Row

READS = """
import json, os, urllib.request
with urllib.request.urlopen(os.environ["SHOP_URL"] + "/openapi.json", timeout=30) as answer:
    version = json.load(answer)["openapi"]
print(json.dumps({"findings": FINDINGS, "said": f"OpenAPI {version}"}))
"""
SCRIPTS = {
    "content": READS.replace("FINDINGS", "[]"),
    "strict": READS.replace("FINDINGS", "['a title is missing', 'no favicon']"),
    "broken": "raise ValueError('no verdict')",
}
RESULTS = {
    "content": "no finding (OpenAPI 3.1",
    "strict": "a title is missing; no favicon",
    "broken": "failed: ValueError: no verdict",
    "absent": "skipped: cannot be installed",
}


@pytest.fixture
def judges(monkeypatch, tmp_path) -> None:
    for name, code in SCRIPTS.items():
        (tmp_path / f"{name}.py").write_text(code)
    clients = [Row(name=name, buyer=tmp_path / f"{name}.py") for name in SCRIPTS]
    wanted = (("x402", "0.0.0"),)
    clients.append(Row(name="absent", buyer=tmp_path / "content.py", packages=wanted))
    judges = tuple(Judge(name=one.name, interface="OpenAPI", client=one) for one in clients)
    monkeypatch.setattr(rows, "JUDGES", judges)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


@pytest.mark.full
def test_every_judge_has_its_row_and_a_finding_is_the_exit_code(judges, tmp_path):
    page = tmp_path / "page.md"
    marks = ("<!-- judges: make clients -->", "<!-- end of judges -->")
    page.write_text(f"before\n{marks[0]}\nan older table\n{marks[1]}\nafter\n")
    ran = CliRunner().invoke(main, ["--cache", str(tmp_path / "cache"), "--write", str(page)])
    assert ran.exit_code == 1, ran.output
    lines = [line for line in ran.stdout.splitlines() if line.startswith("|")]
    found = {line.split("`")[1]: line.split(" | ")[-1] for line in lines[2:]}
    assert set(found) == set(RESULTS)
    for name, result in RESULTS.items():
        assert found[name].startswith(result), found[name]
    assert page.read_text() == "\n".join(("before", marks[0], *lines, marks[1], "after", ""))


def test_one_content_judge_is_a_success(judges, tmp_path):
    ran = CliRunner().invoke(main, ["--cache", str(tmp_path / "cache"), "--only", "content"])
    assert ran.exit_code == 0, ran.output


def test_a_judge_that_is_not_there_is_one_sentence():
    ran = CliRunner().invoke(main, ["--only", "solomon"])
    assert ran.exit_code == 2
    assert "There is no judge 'solomon'; there are openapi-spec-validator, " in ran.output
