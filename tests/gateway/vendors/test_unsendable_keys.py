"""A key that no HTTP header can carry."""

import pytest

from gateway import AccountProblem, Outbound


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-secret\r\n", "sk-secret…", "sk secret\0", ""])
async def test_a_key_that_cannot_be_sent_is_the_operators_affair(httpserver, key):
    httpserver.expect_request("/models").respond_with_json({})
    outbound = Outbound(httpserver.url_for(""), headers={"x-key": key})
    with pytest.raises(AccountProblem) as raised:
        await outbound.request("GET", "/models")
    assert "secret" not in str(raised.value)
    await outbound.close()
