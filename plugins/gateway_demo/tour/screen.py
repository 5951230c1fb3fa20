"""Shows the demo's steps with durations and facts; plain text without a terminal."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import attrs
from rich.console import Console
from rich.padding import Padding
from rich.status import Status
from rich.table import Table
from rich.text import Text

_WIDEST = 96  # columns
# Together with the indent, this lets a transaction hash end in column 79.
_LABEL = 8  # columns
_INDENT = 5
_EXCERPT_LINES = 12
_GOOD, _BAD, _DIM, _NAME = "green", "bold red", "bright_black", "cyan"
# Styles of facts.
NOTABLE, DONE = "yellow", "green"


def open_console() -> Console:
    """Return standard output, with question marks for characters that it cannot show."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    return Console(highlight=False)


@attrs.define
class Screen:
    """The console, and the number of steps shown so far."""

    console: Console = attrs.field(factory=open_console)
    _steps: int = 0

    @property
    def width(self) -> int:
        """Columns used."""
        return min(self.console.width, _WIDEST)

    def print(self, sentence: str, style: str = "") -> None:
        """Show a sentence."""
        self.console.print(Text(sentence, style))

    def part(self, title: str, about: str) -> None:
        """Begin a part of the demo."""
        self.console.print()
        self.console.print(Text.assemble((title, "bold"), ("  " + about, _DIM)))

    @contextmanager
    def step(self, title: str) -> Iterator["Step"]:
        """Show a step: a spinner while it runs, then its outcome, its duration and its facts."""
        self._steps += 1
        step = Step(console=self.console, number=self._steps, title=title)
        with step:
            yield step
        step.finish(self.width, "✓", _GOOD)

    @contextmanager
    def waiting(self, sentence: str) -> Iterator[None]:
        """Show a sentence while the block runs, with a spinner on a terminal."""
        self.console.print()
        if self.console.is_terminal:
            with self.console.status(Text(sentence), spinner_style=_NAME):
                yield
        else:
            self.print(sentence)
            yield

    def lines(self, rows: list[tuple[str, str]]) -> None:
        """Show labelled lines to copy, without wrapping."""
        label_width = max(len(label) for label, _ in rows) + 2
        for label, value in rows:
            line = Text.assemble(" " * _INDENT, (label.ljust(label_width), _DIM), value)
            self.console.print(line, soft_wrap=True)

    def table(self, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
        """Show a small table with right-aligned numbers after the first column."""
        table = Table(box=None, header_style=_DIM, pad_edge=False, padding=(0, 4, 0, 0))
        for index, heading in enumerate(headings):
            table.add_column(heading, justify="right" if index else "left", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        self.console.print(Padding(table, (0, 0, 0, _INDENT), expand=False))

    def excerpt(self, text: str) -> None:
        """Show the first non-empty lines of a text, beside a rule."""
        lines = [line for line in text.splitlines() if line.strip()]
        for line in lines[:_EXCERPT_LINES]:
            style = "bold" if line.startswith("#") else ""
            shown = Text.assemble(" " * _INDENT, ("│ ", _DIM), (line, style))
            shown.truncate(self.width, overflow="ellipsis")
            self.console.print(shown, soft_wrap=True)

    def fail(self, sentence: str, log: str = "") -> None:
        """Print the end of a log, and why the demo failed, to standard error."""
        errors = Console(stderr=True, highlight=False)
        if log:
            errors.print(Text(log, _DIM), soft_wrap=True)
        errors.print(Text.assemble(("gateway demo: ", _BAD), sentence), soft_wrap=True)


@attrs.define(kw_only=True)
class Step:
    """A running step."""

    console: Console
    number: int
    title: str
    _facts: list[tuple[str, Text]] = attrs.field(factory=list)
    _began: float = attrs.field(factory=time.perf_counter)
    _status: Status | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._status = self.console.status(self._make_head(), spinner_style=_NAME)
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
        if error is not None:
            self.finish(self.console.width, "✗", _BAD)

    def now(self, doing: str) -> None:
        """Show the current activity, on a terminal only."""
        if self._status is not None:
            self._status.update(Text.assemble(self._make_head(), (f"  {doing}", _DIM)))

    def fact(self, label: str, value: str, style: str = "") -> None:
        """Add a fact to show below the step."""
        self._facts.append((label, Text(value, style)))

    def finish(self, width: int, mark: str, style: str) -> None:
        """Replace the spinner by the outcome."""
        head = Text.assemble((f"{mark} ", style), self._make_head())
        took = _format_duration(time.perf_counter() - self._began)
        gap = max(1, width - head.cell_len - len(took))
        self.console.print(Text.assemble(head, " " * gap, (took, _DIM)), soft_wrap=True)
        for label, value in self._facts:
            line = Text.assemble(" " * _INDENT, (label.ljust(_LABEL), _DIM), value)
            self.console.print(line, soft_wrap=True)

    def _make_head(self) -> Text:
        return Text.assemble((f"{self.number:>2}  ", _NAME), self.title)


def _format_duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
