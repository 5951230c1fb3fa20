"""Five hundred hostile inputs of all kinds: no 5xx, no undocumented error, nothing charged.

`python -m tests.proof.fuzz --inputs 100000` runs many more.
"""

import pytest

from tests.proof.fuzz import campaign

_INPUTS = 500
_NAMES = [
    "body, parsed",
    "measures, priced",
    "header, parsed",
    "MPP credential, parsed",
    "RPC answer, parsed",
    "x402 body",
    "x402 header",
    "direct body",
    "path and query",
    "receipt, direct flow",
]


@pytest.mark.parametrize("name", _NAMES)
def test_hostile_inputs_meet_documented_errors_only(every, name):
    kind = every[name]
    tally = campaign.run(kind, _INPUTS * kind.share // 100)
    assert not tally.failures, tally.failures[0]
    assert len(tally.outcomes) > 1, "every input met the same fate: the strategy is too coarse"


def test_every_kind_is_run(every):
    assert list(every) == _NAMES
    assert sum(kind.share for kind in every.values()) == 100
