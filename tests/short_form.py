"""Which rows of a long table of cases `make test` plays; `make proof` plays all.

A row is a parametrised case of one test. Of a table with more than four, a quarter is played, but
at least four: those with the lowest hashes, so a new row moves no other, and the values of nested
parameters are mixed. Tables of tests/unit are cheap, and those of payments matter most: these are
played whole. So is the table of standstills, which names its own short form.
"""

import hashlib
from collections import defaultdict

import pytest

_LEAST = 4
_SHARE = 4
_WHOLE = (
    "tests/unit/",
    "tests/proof/standstills/",
    *(
        f"tests/gateway/{folder}/"
        for folder in ("direct", "methods", "mpp", "payer_proof", "refunds", "settlement", "x402")
    ),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the rows that are not played as `full`."""
    tables: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        name, has_row, _ = item.nodeid.partition("[")
        if has_row and not name.startswith(_WHOLE) and not item.get_closest_marker("full"):
            tables[name].append(item)
    for rows in tables.values():
        for item in left_out(rows):
            item.add_marker(pytest.mark.full)


def left_out(rows: list[pytest.Item]) -> list[pytest.Item]:
    """Return the rows that the short form of a table leaves out."""
    kept = max(_LEAST, len(rows) // _SHARE)
    return sorted(rows, key=_hash_of)[kept:]


def _hash_of(item: pytest.Item) -> bytes:
    return hashlib.sha256(item.nodeid.encode()).digest()
