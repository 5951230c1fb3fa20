"""The model of several nodes (bench/scale.py): with the study's inputs, the study's table."""

import contextlib
import importlib.util
import sys
from pathlib import Path

import attrs
import pytest

BENCH = Path(__file__).parents[2] / "bench"
SIZES = {"nodes": [1, 2, 4, 8, 16], "keys": [1, 8, 64], "cores": [4, 16]}
# Of 2026-11-28; "PG" is PostgreSQL.
STUDY = {
    ("x402", 1, 4): "60 key, 60 key, 60 key, 60 key, 60 key",
    ("x402", 1, 16): "60 key, 60 key, 60 key, 60 key, 60 key",
    ("x402", 8, 4): "113 node, 204 node, 370 node, 480 key, 480 key",
    ("x402", 8, 16): "113 node, 204 node, 370 node, 480 key, 480 key",
    ("x402", 64, 4): "113 node, 204 node, 370 node, 529 PG, 517 PG",
    ("x402", 64, 16): "113 node, 204 node, 370 node, 657 node, 933 leader",
    ("direct", 0, 4): "228 node, 439 node, 809 node, 1256 PG, 1256 PG",
    ("direct", 0, 16): "228 node, 439 node, 809 node, 1478 node, 2957 node",
}


@contextlib.contextmanager
def loaded(name: str):
    """Import a file of bench/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[spec.name]


@pytest.fixture(scope="module")
def scale():
    with loaded("scale") as module:
        yield module


@pytest.fixture
def study(scale):
    return scale.read_inputs(BENCH / "scale_study.toml")


def limit(scale, inputs, flow, **size) -> str:
    whole = {"nodes": 4, "keys": 8, "postgres_cores": 16} | size
    return scale.first_limit(inputs.sales[flow], inputs.assumed, scale.Cluster(**whole))[1]


def test_the_studys_inputs_give_the_studys_table(scale, study):
    found = scale.rows(study, *SIZES.values())
    lines = {
        row: ", ".join(f"{rate} {name}" for rate, name in cells) for row, cells in found.items()
    }
    assert {row: line.replace("PostgreSQL", "PG") for row, line in lines.items()} == STUDY


def test_a_slow_chain_a_far_database_and_few_connections_limit_too(scale, study):
    far = attrs.evolve(study, assumed=attrs.evolve(study.assumed, round_trip_ms=2.0))
    assert limit(scale, far, "x402", nodes=1) == "connections"
    slow = attrs.evolve(study, assumed=attrs.evolve(study.assumed, block_ms=2000))
    assert limit(scale, slow, "x402", keys=1) == "chain"
    assert limit(scale, slow, "direct", keys=1) == "node"


def test_a_change_of_one_cost_moves_the_limit(scale):
    changed = scale.read_inputs(BENCH / "scale_study.toml", ["x402.key_ms=1", "assumed.nonces=640"])
    assert limit(scale, changed, "x402", keys=1) == "node"


@pytest.mark.parametrize("change", ["x402.speed=1", "mpp.node_ms=1", "x402.node_ms", "node_ms=1"])
def test_a_change_that_names_nothing_is_refused(scale, change):
    with pytest.raises(ValueError, match=r"TABLE\.NAME=NUMBER|could not convert"):
        scale.read_inputs(BENCH / "scale_study.toml", [change])


def test_the_page_has_the_tables_of_the_measured_inputs(scale):
    """If this fails, paste what `bench/scale.py --markdown` prints."""
    page = (BENCH.parent / "docs" / "scale.md").read_text("utf-8")
    measured = scale.read_inputs(scale.LATEST)
    assert set(measured.sales) == {"x402", "direct"}
    for part in (scale.cost_lines(measured), scale.lines(measured)):
        assert scale.markdown(part) in page
    assert measured.measured.split(",")[0] in page


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_messages_are_counted_however_the_stream_is_cut(size):
    ready, other = b"Z\0\0\0\x05I", b"C\0\0\0\x0dSELECT 1\0"
    commit, notified = b"C\0\0\0\x0bCOMMIT\0", b"A\0\0\0\x0a\0\0\0\x01x\0"
    stream = (other + ready + commit + ready + notified) * 2
    with loaded("wire_counts") as wire_counts:
        messages = wire_counts.Messages()
        for start in range(0, len(stream), size):
            messages.feed(stream[start : start + size])
    assert messages.counts == {"round_trips": 4, "commits": 2, "notifications": 2}
