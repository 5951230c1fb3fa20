"""Runs many inputs of one kind, deterministic for a seed, and counts the outcomes."""

from collections import Counter

import attrs
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.proof.fuzz.kinds import Kind

_BATCH = 1_000  # a batch is forgotten when it is done: Hypothesis keeps a tree of its inputs
_SETTINGS = settings(
    database=None,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


@attrs.define
class Tally:
    """The outcomes of one kind's inputs."""

    kind: str
    outcomes: Counter = attrs.field(factory=Counter)
    failures: list[str] = attrs.field(factory=list)

    @property
    def inputs(self) -> int:
        return self.outcomes.total()


def run(kind: Kind, inputs: int, *, first_seed: int = 0) -> Tally:
    """Run at least `inputs` inputs, or until one fails; it is kept in the tally, shrunk."""
    tally = Tally(kind.name)
    number = first_seed
    while tally.inputs < inputs and not tally.failures:
        _batch(kind, min(_BATCH, inputs - tally.inputs), number, tally)
        number += 1
    return tally


def _batch(kind: Kind, size: int, number: int, tally: Tally) -> None:
    last = None

    @seed(f"{kind.name} {number}")
    @settings(_SETTINGS, max_examples=size)
    @given(kind.inputs)
    def check(value) -> None:
        nonlocal last
        last = value
        tally.outcomes[kind.run(value)] += 1

    try:
        check()
    except Exception as error:  # noqa: BLE001 - whatever comes out is the finding
        tally.failures.append(f"{type(error).__name__}: {error}\n  input: {last!r}")
