"""The metrics of the code, docs/metrics.md, Grafana's board and the alerts agree."""

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.core import Metric

from gateway_operator.metrics.families import Families
from gateway_operator.metrics.instruments import Instruments
from gateway_operator.metrics.numbers import Numbers, Totals
from gateway_operator.metrics.state import State

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^- `(\w+)` \((\w+)(?:; ([^)]+))?\): (.+)$", re.MULTILINE)
USED = re.compile(r"\bgateway_[a-z_]+")
PART = re.compile(r"_(bucket|count|sum)$")
NOTHING = Numbers(
    at=0.0,
    totals=Totals(),
    queue=(),
    payments=(),
    refunds=(),
    gas_wei={},
    on_sale={},
    state=State(
        keys=(),
        clock_ahead_s=None,
        block_age_s=None,
        disk_free=0,
        disk_inodes=None,
        database=0,
        backup_age_s=None,
        drill_age_s=None,
        forgets=None,
    ),
)


def name_of(family: Metric) -> str:
    return family.name + ("_total" if family.type == "counter" else "")


def families() -> list[Metric]:
    instruments = Instruments()
    try:
        return [*Families(NOTHING, "base").collect(), *instruments.registry.collect()]
    finally:
        instruments.close()


def test_the_page_names_every_metric_with_its_type():
    written = {
        f"gateway_{name}": kind
        for name, kind, _, _ in ROW.findall((ROOT / "docs/metrics.md").read_text())
    }
    assert written == {name_of(family): family.type for family in families()}


def test_the_page_says_what_every_metric_means():
    written = {
        f"gateway_{name}": said.removesuffix(" *Process.*")
        for name, _, _, said in ROW.findall((ROOT / "docs/metrics.md").read_text())
    }
    assert written == {name_of(family): family.documentation for family in families()}


@pytest.mark.parametrize("file", ["deploy/grafana.json", "deploy/alerts.yml"])
def test_what_is_shown_or_told_exists(file):
    text = (ROOT / file).read_text()
    known = {name_of(family) for family in families()}
    used = set(USED.findall(text))
    assert used
    histograms = {f.name for f in families() if f.type == "histogram"}
    for name in used:
        base = PART.sub("", name)
        assert name in known or base in histograms, name


def test_every_metric_is_on_the_board():
    text = (ROOT / "deploy/grafana.json").read_text()
    used = {PART.sub("", name) for name in USED.findall(text)} | set(USED.findall(text))
    assert {name_of(family) for family in families()} - used == set()
    json.loads(text)


def test_every_alert_has_an_urgency_and_a_sentence():
    (group,) = yaml.safe_load((ROOT / "deploy/alerts.yml").read_text())["groups"]
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in ("soon", "urgent")
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["expr"].count("(") == rule["expr"].count(")")
