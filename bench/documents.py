"""The document parser's quality beside other engines, by a benchmark's own evaluator.

Downloads nothing. Put a clone of github.com/opendataloader-project/opendataloader-bench into
`bench/.documents`, with its PDFs (Git LFS), or name its folder: a folder needs PDFs, their ground
truth in `ground-truth/markdown`, and the evaluator in `src`. The evaluator and other engines are
installed by hand:

    pip install --target bench/.documents/engines apted rapidfuzz lxml beautifulsoup4 cocoapdf
"""

import argparse
import hashlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import attrs
from document_engines import ENGINES, HOME, measured
from place import IS_SMOKE
from pypdfium2 import PdfDocument
from rich.table import Table
from tables import print_head, print_tables

_METRICS = ("order", "tables", "headings")
_SMOKE_FILES = 3

Evaluate = Callable[[str, str], dict[str, float | None]]


@attrs.frozen
class Run:
    """What one engine made of the documents."""

    engine: str
    scores: Mapping[str, Mapping[str, float | None]]
    facts: Mapping[str, Any]

    def mean(self, metric: str, names: Iterable[str]) -> float | None:
        """Return the mean of a metric; "overall" is that of a document's metrics."""
        values = []
        for name in names:
            scores = [score for score in self.scores[name].values() if score is not None]
            chosen = statistics.fmean(scores) if metric == "overall" else self.scores[name][metric]
            if chosen is not None:
                values.append(chosen)
        return statistics.fmean(values) if values else None


def _evaluator(folder: Path) -> Evaluate:
    sys.path.append(str(folder / "src"))
    try:
        order = import_module("evaluator_reading_order").evaluate_reading_order
        tables = import_module("evaluator_table").evaluate_table
        headings = import_module("evaluator_heading_level").evaluate_heading_level
    except ModuleNotFoundError as error:
        raise SystemExit(f"No module {error.name}: {__doc__}") from error
    metrics = dict(zip(_METRICS, (order, tables, headings), strict=True))

    def evaluate(truth: str, found: str) -> dict[str, float | None]:
        return {name: metric(truth, found)[0] for name, metric in metrics.items()}

    return evaluate


def _documents(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Return each document's PDF and ground truth by name; some files of a clone are pointers."""
    truths = {path.stem: path for path in folder.glob("ground-truth/**/*.md")}
    pdfs = {path.stem: path for path in folder.rglob("*.pdf") if path.stem in truths}
    whole = {
        name: path for name, path in pdfs.items() if path.read_bytes()[:1024].find(b"%PDF") >= 0
    }
    if missing := len(truths) - len(whole):
        print(f"{folder}: {missing} of {len(truths)} documents have no PDF, and are left out")
    chosen = sorted(whole)[: _SMOKE_FILES if IS_SMOKE else None]
    return {name: (whole[name], truths[name]) for name in chosen}


def _half(name: str) -> int:
    return hashlib.sha256(name.encode()).digest()[0] % 2


def _run(engine: str, documents: Mapping[str, tuple[Path, Path]], evaluate: Evaluate) -> Run:
    with tempfile.TemporaryDirectory() as out:
        facts = measured(engine, Path(out), [pdf for pdf, _ in documents.values()])
        scores = {}
        for name, (_, truth) in documents.items():
            found = Path(out) / f"{name}.md"
            text = found.read_text() if found.exists() else ""
            scores[name] = evaluate(truth.read_text(), text)
    return Run(engine, scores, facts)


def _table(title: str, runs: Sequence[Run], pages: int) -> Table:
    table = Table("engine", "version", "overall", *_METRICS, title=title)
    for column in ("half 1", "half 2", "CPU s a page", "peak MB", "failed"):
        table.add_column(column)
    for run in runs:
        names = list(run.scores)
        halves = [[name for name in names if _half(name) == half] for half in (0, 1)]
        shown = [run.mean(metric, names) for metric in ("overall", *_METRICS)]
        shown += [run.mean("overall", half) for half in halves]
        cells = ["" if value is None else f"{value:.3f}" for value in shown]
        cpu_s = run.facts["cpu_s"] / max(pages, 1)
        facts = (f"{cpu_s:.3f}", f"{run.facts['peak_mb']:.0f}", str(len(run.facts["failed"])))
        table.add_row(run.engine, _version(run.engine), *cells, *facts)
    return table


def _print_worst(run: Run, count: int) -> None:
    for metric in _METRICS:
        scored = [
            (scores[metric] or 0.0, name)
            for name, scores in run.scores.items()
            if scores[metric] is not None
        ]
        worst = ", ".join(f"{name} {score:.3f}" for score, name in sorted(scored)[:count])
        print(f"{run.engine}, worst {metric}: {worst}")


def _version(engine: str) -> str:
    return "this tree" if engine == "gateway" else metadata.version(engine)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=HOME)
    parser.add_argument("--held-out", type=Path, help="PDFs that were not used for tuning")
    parser.add_argument("--only", nargs="+", metavar="engine", choices=ENGINES)
    parser.add_argument("--worst", type=int, default=0, help="name so many worst documents")
    parser.add_argument("--smoke", action="store_true", help="three documents")
    chosen = parser.parse_args()
    if not (chosen.folder / "src").is_dir():
        print(__doc__)
        return
    evaluate = _evaluator(chosen.folder)
    console = print_head()
    for folder in filter(None, (chosen.folder, chosen.held_out)):
        documents = _documents(folder)
        runs = []
        for name, engine in ENGINES.items():
            if name in (chosen.only or ENGINES) and "pdf" in engine.kinds and engine.is_installed:
                with console.status(f"{name}: {len(documents)} documents"):
                    runs.append(_run(name, documents, evaluate))
        pages = sum(len(PdfDocument(pdf)) for pdf, _ in documents.values())
        title = f"{folder}: {len(documents)} documents, {pages} pages"
        print_tables(console, [_table(title, runs, pages)])
        for run in runs if chosen.worst else ():
            _print_worst(run, chosen.worst)


if __name__ == "__main__":
    main()
