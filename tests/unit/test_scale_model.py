"""The model of several nodes (bench/scale.py): with the study's inputs, the study's table."""

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


@pytest.fixture(scope="module")
def scale():
    spec = importlib.util.spec_from_file_location("bench_scale", BENCH / "scale.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[spec.name]


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


def test_the_measured_inputs_are_complete(scale):
    measured = scale.read_inputs(scale.LATEST)
    assert set(measured.sales) == {"x402", "direct"}
    assert all(rate for row in scale.rows(measured, *SIZES.values()).values() for rate, _ in row)
