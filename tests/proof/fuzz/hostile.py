"""Hypothesis strategies of JSON from a hostile or broken peer."""

import copy
import json

from hypothesis import strategies as st

ODD_NUMBERS = [
    0, -1, 1, 27, 2**31, 2**53 + 1, 2**63, 2**64, 2**255, 2**256, -(2**256), 10**400,
    0.5, -0.0, 1e308, 1e-320, float("nan"), float("inf"), float("-inf"),
]  # fmt: skip
ODD_TEXTS = [
    "", " ", "0", "-1", "+1", "1_000", "1e3", "0.02", " 20000", "٣", "²", "NaN", "null", "true",
    "0x", "0x0", "0X1", "-0x1", "0x_1", "0xg", "0x" + "0" * 63, "0x" + "f" * 64, "0x" + "F" * 40,
    "0x" + "f" * 500, "9" * 78, "9" * 79, "1" * 5000, "\x00", "a\x00b", "\ud800", "a\udfffb",
    "\ufeff", "\u202e", "e\u0301", "🦊" * 20, "\r\n", "../../etc/passwd", "%00", "'; DROP TABLE",
    "{{7*7}}", "<script>", "a" * 256, "x" * 10_001, "é" * 10_000,
]  # fmt: skip

numbers = st.sampled_from(ODD_NUMBERS) | st.integers() | st.floats()
texts = st.sampled_from(ODD_TEXTS) | st.text(max_size=20)
leaves = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)


def mostly(usual, odd):
    """Draw from the first strategy eight times out of nine."""
    return st.integers(0, 8).flatmap(lambda number: odd if number == 8 else usual)


def paths(document, above=()):
    """Return the path to every value in a JSON document except its root."""
    inside = document.items() if isinstance(document, dict) else ()
    inside = enumerate(document) if isinstance(document, list) else inside
    found = []
    for key, value in inside:
        found += [(*above, key), *paths(value, (*above, key))]
    return found


@st.composite
def mutated(draw, document, more=values):
    """Draw a document with a few values replaced, removed, doubled or renamed."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
        places = paths(changed)
        if not places:
            break
        *way, last = draw(st.sampled_from(places))
        holder = changed
        for key in way:
            holder = holder[key]
        _edit(draw, holder, last, more)
    return changed


def _edit(draw, holder, last, more):
    kind = draw(st.sampled_from(["replace", "replace", "replace", "remove", "wrap", "add", "case"]))
    value = holder[last]
    if kind == "remove":
        del holder[last]
    elif kind == "wrap":
        holder[last] = draw(st.sampled_from([[value], {"0": value}, [value, value], [[]]]))
    elif kind == "add" and isinstance(holder, dict):
        holder[draw(texts)] = draw(more)
    elif kind == "case" and isinstance(value, str):
        holder[last] = draw(st.sampled_from([value.upper(), value + " ", value[:-1], value * 2]))
    else:
        holder[last] = draw(more)


def dumped(document, *, ascii_only=True) -> bytes:
    """Write JSON as a careless program does, with NaN and lone surrogates."""
    return json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


@st.composite
def spoiled(draw, documents):
    """Draw a document's bytes, some of them broken as text."""
    data = dumped(draw(documents), ascii_only=draw(st.booleans()))
    kind = draw(st.sampled_from(["whole"] * 6 + ["cut", "byte", "nested", "twice", "bom", "space"]))
    if kind == "cut":
        return data[: draw(st.integers(0, len(data)))]
    if kind == "byte":
        at = draw(st.integers(0, len(data)))
        return data[:at] + draw(st.binary(min_size=1, max_size=3)) + data[at + 1 :]
    if kind == "nested":
        return _nested(draw, data)
    if kind == "twice":  # every key a second time
        return data[:-1] + b"," + data[1:] if data[:1] == b"{" else data * 2
    before = {"bom": b"\xef\xbb\xbf", "space": b" \t\r\n"}.get(kind, b"")
    return before + data


def _nested(draw, data: bytes) -> bytes:
    depth = draw(st.sampled_from([3, 99, 100, 101, 1_000, 5_000]))
    opening, closing = draw(st.sampled_from([(b"[", b"]"), (b'{"a":', b"}")]))
    bomb = opening * depth + b"1" + closing * depth
    return data[:-1] + b',"unknown":' + bomb + b"}" if data[:1] == b"{" else bomb
