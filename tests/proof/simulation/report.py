"""The outcomes of many histories, as a table."""

from collections import Counter

import attrs

from tests.proof.simulation.history import Outcome

_SHOWN = 10  # violations printed in full


@attrs.define
class Report:
    """The sum of many outcomes; reports can be added."""

    histories: int = 0
    lives: int = 0
    steps: int = 0
    seconds: float = 0.0  # of virtual time
    faults: Counter = attrs.field(factory=Counter)
    states: Counter = attrs.field(factory=Counter)
    violations: list[tuple[int, str]] = attrs.field(factory=list)  # (seed, sentence)

    def add(self, outcome: Outcome) -> None:
        self.histories += 1
        self.lives += outcome.lives
        self.steps += outcome.steps
        self.seconds += outcome.seconds
        self.faults += outcome.faults
        self.states += outcome.states
        self.violations += [(outcome.seed, text) for text in outcome.violations]

    def merge(self, other: "Report") -> None:
        for name in ("histories", "lives", "steps", "seconds", "faults", "states", "violations"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def table(self, wall_s: float) -> str:
        """Return the table; `wall_s` is the total duration."""
        rows = [
            ("histories", self.histories),
            ("lives of the process", self.lives),
            ("steps", self.steps),
            ("hours of virtual time", round(self.seconds / 3600)),
            ("payments", sum(self.states.values())),
            *((f"  {name}", count) for name, count in sorted(self.states.items())),
            ("faults", sum(self.faults.values())),
            *((f"  {name}", count) for name, count in self.faults.most_common()),
            ("violations", len(self.violations)),
            ("histories a second", round(self.histories / wall_s, 1)),
        ]
        return "\n".join(f"{name:<52}{count:>14,}" for name, count in rows)

    def complaints(self, mutant: str | None) -> str:
        """Return the first violations, each with the command that replays it."""
        lines = []
        for seed, text in self.violations[:_SHOWN]:
            lines += [f"seed {seed}: {text}", f"  {replay(seed, mutant)}"]
        if len(self.violations) > _SHOWN:
            lines.append(f"... and {len(self.violations) - _SHOWN} more")
        return "\n".join(lines)


def replay(seed: int, mutant: str | None = None) -> str:
    """Return the command that replays a history."""
    broken = f" --mutant {mutant}" if mutant else ""
    return f"python -m tests.proof.simulation --seed {seed}{broken} --trace"
