"""Files that take long to check; `make fuzz` sends them for longer."""

import pytest

from tests.proof.fuzz import slow_files


@pytest.mark.full
def test_ordinary_files_get_their_price_while_slow_ones_are_sent():
    outcomes, findings = slow_files.run(6)
    assert findings == []
    assert outcomes["ordinary: 402"] == 6
