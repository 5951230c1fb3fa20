"""An RPC endpoint announces that it fails, and that it answers again."""

from typing import Any

import pytest

from gateway.chain.endpoints import Endpoint
from gateway.errors import ChainUnavailable
from gateway.telemetry import signals

OK = {"result": "0x1"}
SILENCE = OSError("closed")
BUSY = {"error": {"code": 429, "message": "too many requests"}}
REVERT = {"error": {"code": 3, "message": "execution reverted"}}


class Answers:
    """A transport that returns or raises one answer after the other."""

    def __init__(self, *answers: Any) -> None:
        self.left = list(answers)

    async def make_request(self, method: str, params: list[Any]) -> Any:
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def announced(*answers: Any) -> list[bool]:
    """Announcements of an endpoint that is called once for each answer."""
    seen = []

    def note(_: Any, *, endpoint: int, is_failing: bool) -> None:
        assert endpoint == 2
        seen.append(is_failing)

    endpoint = Endpoint(place=2, provider=Answers(*answers), timeout_s=5.0)
    with signals.rpc_failing.connected_to(note):
        for answer in answers:
            if answer is OK:
                assert await endpoint.request("eth_call") == "0x1"
            else:
                with pytest.raises(Exception, match=r"reverted|RPC endpoint 2"):
                    await endpoint.request("eth_call")
    return seen


async def test_an_endpoint_that_answers_announces_nothing():
    assert await announced(OK, REVERT, OK) == []


@pytest.mark.parametrize("failure", [SILENCE, BUSY])
async def test_each_failure_is_announced_and_the_first_answer_after_it(failure):
    assert await announced(OK, failure, failure, OK, OK) == [True, True, False]


async def test_a_revert_is_an_answer():
    assert await announced(SILENCE, REVERT, REVERT) == [True, False]


async def test_silence_is_raised_without_the_address():
    endpoint = Endpoint(place=2, provider=Answers(SILENCE), timeout_s=5.0)
    with pytest.raises(ChainUnavailable, match=r"^RPC endpoint 2: OSError at eth_call$"):
        await endpoint.request("eth_call")
