"""Engines that convert documents to Markdown; as a program, it runs one of them on files.

`document_engines.py liteparse OUT FILE…` writes `OUT/NAME.md` for each file and prints JSON. All
engines but the gateway's parser are optional, and are used if they can be imported.
"""

import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
from tree import HERE

# Where a benchmark's files and other engines are.
HOME = Path(__file__).parent / ".documents"
sys.path.append(str(HOME / "engines"))
_TIMEOUT_S = 3600
Convert = Callable[[Path], str]


@attrs.frozen
class Engine:
    """An engine: the module it needs, and what loads it."""

    module: str
    load: Callable[[], Convert]
    kinds: Sequence[str] = ("pdf",)

    @property
    def is_installed(self) -> bool:
        """Whether the module can be imported."""
        return importlib.util.find_spec(self.module) is not None


def _gateway() -> Convert:
    from gateway_documents.child import libraries, work
    from gateway_documents.kinds import recognise

    libraries.load_lazy_parts()

    def convert(path: Path) -> str:
        data = path.read_bytes()
        kind = recognise(path.suffix, data)
        pages = work.work("parse", kind, data)[1:]
        return "\n\n".join(page.decode() for page in pages if page.strip())

    return convert


def _liteparse() -> Convert:
    import liteparse

    reader = liteparse.LiteParse(
        ocr_enabled=False, quiet=True, output_format="markdown", num_workers=1
    )
    return lambda path: "\n\n".join(page.markdown for page in reader.parse(path.read_bytes()).pages)


def _anydoc() -> Convert:
    import anydoc

    return lambda path: str(anydoc.to_markdown(str(path)))


def _docvortex() -> Convert:
    import docvortex

    def convert(path: Path) -> str:
        target = path.parent / f".{path.name}.{os.getpid()}.md"
        try:
            docvortex.convert(path, target, overwrite=True, parse_mode="txt")
            return target.read_text()
        finally:
            target.unlink(missing_ok=True)

    return convert


def _cocoapdf() -> Convert:
    import cocoapdf

    return lambda path: str(cocoapdf.convert(path.read_bytes()).markdown)


def _pdf_inspector() -> Convert:
    import pdf_inspector

    return lambda path: pdf_inspector.process_pdf_bytes(path.read_bytes()).markdown or ""


def _pymupdf4llm() -> Convert:
    import pymupdf4llm

    return lambda path: str(pymupdf4llm.to_markdown(path))


def _markitdown() -> Convert:
    import markitdown

    converter = markitdown.MarkItDown()
    return lambda path: str(converter.convert(path).text_content)


def _docling() -> Convert:
    from docling.document_converter import DocumentConverter

    converter = DocumentConverter()
    return lambda path: str(converter.convert(path).document.export_to_markdown())


_ALL = ("pdf", "docx", "pptx", "xlsx", "csv", "html", "txt")
ENGINES = {
    "gateway": Engine("gateway_documents", _gateway, _ALL),
    "liteparse": Engine("liteparse", _liteparse),
    "anydoc": Engine("anydoc", _anydoc, ("docx", "pptx", "xlsx", "csv")),
    "docvortex": Engine("docvortex", _docvortex),
    "cocoapdf": Engine("cocoapdf", _cocoapdf),
    "pdf-inspector": Engine("pdf_inspector", _pdf_inspector),
    "pymupdf4llm": Engine("pymupdf4llm", _pymupdf4llm),
    "markitdown": Engine("markitdown", _markitdown, _ALL),
    "docling": Engine("docling", _docling, _ALL),
}


def measured(name: str, out: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Run an engine on files in a process of its own, and return what `main` prints."""
    others = [] if name == "gateway" else [str(HOME / "engines")]
    done = subprocess.run(
        [sys.executable, __file__, name, str(out), *map(str, files)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*HERE.sources, *others])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_TIMEOUT_S,
        check=True,
    )
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def _cpu_s() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    spent = [resource.getrusage(kind) for kind in kinds]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def _peak_mb() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1000


def main(name: str, out: Path, files: Sequence[Path]) -> None:
    """Convert files, and print the CPU seconds, the peak memory and the failures as JSON."""
    convert = ENGINES[name].load()
    idle_mb, cpu_s, failed = _peak_mb(), 0.0, []
    began = time.monotonic()
    for path in files:
        before = _cpu_s()
        try:
            text = convert(path)
        except BaseException as error:  # noqa: BLE001 - engines raise anything, and Rust panics
            failed.append(f"{path.name}: {type(error).__name__}: {error}"[:200])
        else:
            (out / f"{path.stem}.md").write_text(text, errors="replace")
        cpu_s += _cpu_s() - before
    took = {"cpu_s": cpu_s, "wall_s": time.monotonic() - began}
    memory = {"idle_mb": idle_mb, "peak_mb": _peak_mb()}
    print(json.dumps({**took, **memory, "failed": failed}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
