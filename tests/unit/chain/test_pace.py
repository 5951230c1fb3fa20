"""The pace of a chain, measured between its newest blocks."""

import pytest

from gateway.chain.pace import describe_pace, measure_pace, paces_differ
from tests.unit.payments.paced_chain import DENIM, PACES, PacedChain
from tests.unit.payments.test_nonce_events import signed_at


def paced(name: str, now: float) -> PacedChain:
    return PacedChain(now=now, paces=PACES[name], signed=signed_at(now))


@pytest.mark.parametrize(("name", "block_s"), [("0.2 s", 0.2), ("2 s", 2.0), ("12 s", 12.0)])
@pytest.mark.parametrize("offset_s", [0.0, 0.2, 0.9])
async def test_any_pace_is_measured(name, block_s, offset_s):
    chain = paced(name, DENIM + offset_s)
    found = await measure_pace(chain)
    assert found == pytest.approx(block_s, rel=0.02)
    assert describe_pace(found) == f"a block every {name}"
    assert chain.calls == {"block": 3}


@pytest.mark.parametrize(
    ("name", "before_s", "after_s"),
    [
        ("2 s, then 0.2 s", 2.0, 0.2),
        ("0.2 s, then 2 s", 0.2, 2.0),
    ],
)
async def test_a_pace_that_has_just_changed_is_unknown_and_never_a_mean(name, before_s, after_s):
    seen = []
    for second in range(-10, 1_400, 5):
        found = await measure_pace(paced(name, DENIM + second))
        if found is None:
            seen.append(None)
        elif not paces_differ(found, before_s):
            seen.append(before_s)
        else:
            assert not paces_differ(found, after_s)
            seen.append(after_s)
    in_order = [seen[at] for at in range(len(seen)) if not at or seen[at] != seen[at - 1]]
    assert in_order[0] == before_s
    assert in_order[-1] == after_s
    assert None in in_order


async def test_a_young_chain_has_no_pace_yet():
    young = PacedChain(now=DENIM, signed=signed_at(DENIM))
    young.now = young.time_of(599)
    assert await measure_pace(young) is None
    young.now = young.time_of(600)
    assert await measure_pace(young) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("one_s", "other_s", "differ"),
    [(2.0, 0.2, True), (0.2, 2.0, True), (12.0, 12.4, False), (2.0, 3.0, False), (2.0, 3.1, True)],
)
def test_paces_differ_by_more_than_half(one_s, other_s, differ):
    assert paces_differ(one_s, other_s) == differ
