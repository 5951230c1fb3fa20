"""No code compares an endpoint with a capability's name: declarations say what differs."""

import ast
import re
from pathlib import Path

from gateway.domain.capabilities import DECLARED

_ROOT = Path(__file__).parents[3]
_CONSTANTS = {name.upper().replace("-", "_") for name in DECLARED}
_NAMED = re.compile("|".join(rf"""["']{name}["']""" for name in DECLARED))
# Declares them.
_DECLARING = _ROOT / "gateway/domain/built_in.py"


def names_one(node: ast.AST) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(names_one, node.elts))
    if isinstance(node, ast.Constant):
        return node.value in DECLARED
    if isinstance(node, ast.Attribute):
        return node.attr in _CONSTANTS
    return isinstance(node, ast.Name) and node.id in _CONSTANTS


def chooses(node: ast.AST) -> bool:
    """Whether a node compares with a capability's name, or chooses by it."""
    if isinstance(node, ast.Compare):
        return any(map(names_one, (node.left, *node.comparators)))
    if isinstance(node, ast.Dict):
        return any(key is not None and names_one(key) for key in node.keys)
    if isinstance(node, ast.MatchValue):
        return names_one(node.value)
    return False


def test_the_rule_finds_each_way_to_choose():
    for code in (
        "endpoint.capability == IMAGE_EDITING",
        "name in (TEXT_TO_IMAGE, other)",
        "kinds = {'document-parsing': 1}",
        "match name:\n case 'text-to-image': pass",
    ):
        assert any(map(chooses, ast.walk(ast.parse(code)))), code
    assert not any(map(chooses, ast.walk(ast.parse("Endpoint(capability='text-to-image')"))))


def test_no_code_chooses_by_a_capabilitys_name():
    found = []
    for folder in ("gateway", "plugins", "providers"):
        for path in (_ROOT / folder).rglob("*.py"):
            text = path.read_text()
            # Parsing every file would take seconds.
            if path == _DECLARING or not any(name in text for name in (*DECLARED, *_CONSTANTS)):
                continue
            nodes = ast.walk(ast.parse(text))
            found += [f"{path}:{node.lineno}" for node in nodes if chooses(node)]
    assert not found


def test_no_page_or_script_names_a_capability():
    folders = [_ROOT / "static", _ROOT / "frontend" / "src"]
    files = [path for one in folders for path in one.rglob("*") if path.suffix != ".js"]
    texts = [path for path in files if path.suffix in (".html", ".txt", ".ts")]
    assert texts
    assert not [path for path in texts if _NAMED.search(path.read_text())]
