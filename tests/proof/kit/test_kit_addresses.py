"""A fake API responds at its own paths and at no others."""

import httpx2
import pytest

from gateway.testing import FakeApi, Reply
from gateway_testing.fakes.server import FakeServer, serving

UNKNOWN = (("GET", "/"), ("GET", "/v1/pictures"), ("POST", "/v1/picture"), ("GET", "/v1/balances"))


class StrictApi(FakeApi):
    """Names all its paths."""

    submit = "POST /v1/pictures"
    cancel = "DELETE /v1/pictures/[^/]+"
    poll = "GET /v1/pictures/[^/]+"
    others = "GET /v1/balance"

    def accepted(self, ask):
        return Reply({"id": ask.job}, 201)

    def waiting(self, ask):
        return Reply({"id": ask.job, "state": "waiting"})


class EarlierApi(StrictApi):
    """Written before `poll` and `others` existed."""

    poll = ""
    others = ""

    def other(self, ask):
        return Reply({"path": ask.path})


class SilentApi(EarlierApi):
    """Names no other paths."""

    other = FakeApi.other


@pytest.fixture(scope="module")
def server():
    with serving() as running:
        yield running


@pytest.fixture
def begin(server):
    def begin(api):
        fake = FakeServer(server, api())
        fake.begin()
        fake.set_answers("accepted", jobs=("waiting",))
        return lambda method, path: httpx2.request(method, fake.url + path).status_code

    return begin


@pytest.mark.parametrize(("method", "path"), UNKNOWN)
def test_an_unknown_address_is_404(begin, method, path):
    status_of = begin(StrictApi)
    assert status_of("GET", "/v1/balance") == 200
    assert status_of(method, path) == 404


def test_a_job_is_asked_for_where_the_api_has_it(begin):
    status_of, job = begin(StrictApi), StrictApi().job_id(1)
    assert status_of("POST", "/v1/pictures") == 201
    assert status_of("GET", f"/v1/pictures/{job}") == 200
    assert status_of("GET", f"/v2/pictures/{job}") == 404
    assert status_of("DELETE", f"/v1/pictures/{job}") == 200


@pytest.mark.parametrize(("method", "path"), UNKNOWN)
def test_an_api_that_answers_the_others_itself_goes_on_to_do_so(begin, method, path):
    assert begin(EarlierApi)(method, path) == 200


def test_an_api_that_names_no_other_address_has_none(begin):
    status_of = begin(SilentApi)
    assert status_of("GET", "/v1/balance") == 404
    assert status_of("POST", "/v1/pictures") == 201
