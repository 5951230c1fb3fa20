"""Clients that read nothing, slowly, all, or some; `make fuzz` runs hundreds of them."""

import pytest

from tests.conftest import one_server
from tests.proof.fuzz import readers


@pytest.mark.full
@one_server
def test_clients_that_read_get_all_and_others_take_no_more_than_their_share(http_server):
    outcomes, findings = readers.run(http_server, 60)
    assert findings == []
    assert outcomes["all: whole"]
    assert outcomes["nothing: less"]
