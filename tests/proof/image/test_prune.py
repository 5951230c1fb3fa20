"""The packages of the image work after deploy/prune.py."""

import ast
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import documents_files as files
import pytest
import uvloop
from packaging.utils import canonicalize_name

from tests.conftest import Payer
from tests.proof.distribution.test_pinned_versions import LEFT_OUT, pins
from tests.proof.image.pruned import SOURCES, Packages, prune
from tests.proof.process.gateway_process import Gateway

_LIST = "deploy/image.txt"
_IMPORT = """
import json, sys
missing = {}
for statement in json.load(open(sys.argv[1])):
    try:
        exec(statement, {})
    except ImportError as error:
        missing[statement] = error.name.partition(".")[0], str(error)
print(json.dumps(missing))
"""
_PARSE = """
import asyncio, json, sys
from pathlib import Path
import gateway
from gateway_documents.provider import DocumentParser

async def main():
    parser, texts = DocumentParser(pictures=None), {}
    for file in Path(sys.argv[1]).iterdir():
        attached = gateway.Attachment(name=file.name, data=file.read_bytes())
        request = gateway.GenerationRequest(attachment=attached)
        texts[file.name] = (await parser.submit(request, None)).text
    await parser.close()
    print(json.dumps(texts))

asyncio.run(main())
"""
_EVERY_MODULE = """
import contextlib, importlib, io, json, os, sys
from pathlib import Path
site = Path(sys.argv[1])
broken = []
for file in sorted(site.rglob("*.py")):
    parts = file.relative_to(site).with_suffix("").parts
    if parts[-1] in ("__main__", "setup", "conftest"):
        continue
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            importlib.import_module(name)
    except BaseException as error:
        broken.append(name)
print(json.dumps(broken))
sys.stdout.flush()
os._exit(0)
"""

needs_strip = pytest.mark.skipif(not shutil.which("strip"), reason="binutils is not installed")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """The packages of the default image, pruned."""
    made = Packages.of_list(tmp_path_factory.mktemp("image") / "venv", _LIST)
    assert made.prune().startswith("pruned ")
    return made


def written(folder: Path, name: str, text: str = "") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def remaining(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


@needs_strip
def test_sources_stubs_and_tests_go_and_everything_else_stays(tmp_path):
    gone = (
        "a/fast.c",
        "a/fast.pyx",
        "a/fast.pyi",
        "a/tests/deep/test_a.py",
        "a/de.po",
        "A/SelfTest/b.py",
    )
    kept = ("a/__init__.py", "a/py.typed", "a/tests.py", "a/de.mo", "a/data.json", "a/contract.sol")
    for name in (*gone, *kept, "olefile/olefile2.py"):
        written(tmp_path, name)
    done = prune(tmp_path)
    assert done.returncode == 0, done.stderr
    assert remaining(tmp_path) == set(kept)


@needs_strip
def test_a_library_loses_its_debug_tables_and_not_its_other_names(tmp_path):
    """The other name is as in a cache from which the packages were linked."""
    library = tmp_path / "site" / "loop.so"
    library.parent.mkdir()
    shutil.copy(uvloop.loop.__file__, library)
    cached = tmp_path / "cached.so"
    cached.hardlink_to(library)
    before = library.stat()
    assert prune(library.parent).returncode == 0
    assert library.stat().st_size < before.st_size
    assert library.stat().st_mode == before.st_mode
    assert cached.read_bytes() == Path(uvloop.loop.__file__).read_bytes()


@needs_strip
def test_a_library_that_auditwheel_moved_stays_as_it_is(tmp_path):
    moved = tmp_path / "numpy.libs" / "loop.so"
    moved.parent.mkdir()
    shutil.copy(uvloop.loop.__file__, moved)
    assert prune(tmp_path).returncode == 0
    assert moved.read_bytes() == Path(uvloop.loop.__file__).read_bytes()


def test_without_strip_it_is_one_sentence(tmp_path):
    kept = written(tmp_path, "a/fast.c")
    done = prune(tmp_path, PATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (
        1,
        "prune.py needs `strip`: apt-get install binutils\n",
    )
    assert kept.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="a shell script stands for `strip`")
def test_a_library_that_strip_breaks_fails_the_build(tmp_path):
    shutil.copy(uvloop.loop.__file__, tmp_path / "loop.so")
    bad = written(tmp_path / "bin", "strip", '#!/bin/sh\nhead -c 100 "$4" >"$3"\n')
    bad.chmod(0o755)
    done = prune(tmp_path, PATH=f"{bad.parent}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 1
    assert done.stderr.startswith("prune.py: after `strip` a library cannot be loaded: ")
    assert "loop.so" in done.stderr


def third_party_imports() -> set[str]:
    """Return each statement of this checkout that imports something installed, also a late one."""
    found = set()
    for source in SOURCES:
        for file in source.glob("gateway*/**/*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {f"import {one.name}" for one in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    found.add(
                        f"from {node.module} import {', '.join(one.name for one in node.names)}"
                    )
    return {one for one in found if not one.split()[1].startswith(("gateway", "__future__"))}


@needs_strip
def test_what_the_gateway_imports_is_there(packages, tmp_path):
    """But for the packages of extras that the image does not have."""
    statements = third_party_imports()
    list_of_them = written(tmp_path, "imports.json", json.dumps(sorted(statements)))
    missing = json.loads(packages.run(_IMPORT, list_of_them))
    in_image = {pin.name for pin in pins(_LIST)} | LEFT_OUT
    owners = importlib.metadata.packages_distributions()
    broken = {
        statement: sentence
        for statement, (root, sentence) in missing.items()
        if in_image & {canonicalize_name(one) for one in owners.get(root, ())}
    }
    assert broken == {}
    assert len(statements) - len(missing) > 300


@needs_strip
def test_it_reads_each_kind_of_document_as_before(packages, tmp_path):
    whole = files.ordinary_files()
    for name, data in whole.items():
        (tmp_path / name).write_bytes(data)
    here = subprocess.run(
        [sys.executable, "-c", _PARSE, tmp_path],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES))},
    )
    texts = json.loads(packages.run(_PARSE, tmp_path))
    assert texts == json.loads(here.stdout)
    assert set(texts) == set(whole)


@needs_strip
@pytest.mark.full
def test_it_sells(packages, tmp_path, chain, key):
    gateway = Gateway(tmp_path, chain, key)
    gateway.command, gateway.is_forked = (packages.python, "-m", "gateway", "serve"), False
    gateway.start()
    try:
        gateway.let_go()
        task = gateway.task(gateway.bought(Payer(chain).header()), wait_s=20)
        assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    finally:
        gateway.kill()


@needs_strip
@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["deploy/image.txt", "deploy/image-ocr.txt", "deploy/image-demo.txt"]
)
def test_no_module_misses_what_was_pruned(tmp_path, name):
    whole = Packages.of_list(tmp_path / "whole", name)
    broken = set(json.loads(whole.run(_EVERY_MODULE, whole.site)))
    pruned = Packages.of_list(tmp_path / "pruned", name)
    pruned.prune()
    assert set(json.loads(pruned.run(_EVERY_MODULE, pruned.site))) <= broken


@needs_strip
def test_each_module_that_stays_is_for_python_3(packages):
    """The image's build compiles them all. Only wheels that admit Python 2 may have others."""
    older = [
        one
        for one in importlib.metadata.distributions(path=[str(packages.site)])
        if "Tag: py2-" in (one.read_text("WHEEL") or "")
    ]
    assert older
    for package in older:
        for file in package.files or ():
            path = Path(str(package.locate_file(file)))
            if path.suffix == ".py" and path.exists():
                compile(path.read_bytes(), str(path), "exec")
