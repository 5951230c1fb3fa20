"""`gateway check --listing`: whether a Bazaar would list each endpoint, and whether it does."""

import json

import attrs
import pytest
from click.testing import CliRunner
from pytest_httpserver import HTTPServer

from gateway.cli import main
from gateway_check.listing import find_listing
from tests.bundled_endpoints import bundled_endpoints
from tests.gateway.facilitator.facilitators import answer

SLUG = "sandbox-image"
_SLUGS = (SLUG, f"{SLUG}-edit", "document-parser", "sandbox-extract")
ADDRESS = f"https://gateway.example.com/api/x402/{SLUG}"
PASSED = {"check": "returns_402", "passed": True, "severity": "required", "detail": "402"}
ACCEPTED = {"valid": True, "preflight": [PASSED], "simulation": {"outcome": "accepted"}}


@pytest.fixture
def versions():
    return (2,)


@pytest.fixture
def settings(settings):
    return attrs.evolve(settings, base_url="https://gateway.example.com", sandbox=True)


@pytest.fixture
def bazaar(site):
    """A facilitator whose `/supported` states that it lists endpoints."""

    def supports(site, request):
        return answer(site.really(request) | {"extensions": ["bazaar"]})

    site.faults["/supported"] = supports


@pytest.fixture
def said(settings, monkeypatch):
    """Returns the rows about listings that a command prints."""
    monkeypatch.setattr("gateway_check.commands.check.load_settings", lambda: settings)

    def see(*arguments: str) -> dict[str, tuple[bool, str]]:
        shown = CliRunner().invoke(main, ["check", "--json", *arguments])
        rows = {row["name"]: (row["ok"], row["found"]) for row in json.loads(shown.stdout)}
        return {name: row for name, row in rows.items() if name.startswith("listing")}

    return see


@pytest.fixture
def validator(facilitator_server: HTTPServer):
    """Returns the URL of a validator with this response."""

    def says(body, status: int = 200) -> str:
        facilitator_server.expect_oneshot_request(
            "/validate", method="POST", json={"resource": ADDRESS, "method": "POST"}
        ).respond_with_data(
            body if isinstance(body, str) else json.dumps(body),
            status,
            content_type="application/json",
        )
        return facilitator_server.url_for("/validate")

    return says


def test_each_endpoint_has_a_row_where_the_facilitator_lists(said, bazaar):
    rows = said("--listing")
    assert set(rows) == {f"listing {slug}" for slug in _SLUGS}
    assert all(ok for ok, _ in rows.values())
    assert ADDRESS in rows[f"listing {SLUG}"][1]


def test_a_facilitator_without_a_bazaar_lists_nothing(said):
    ((name, (ok, found)),) = said("--listing").items()
    assert (name, ok) == ("listing", False)
    assert "names no Bazaar" in found


def test_without_the_option_no_row_is_about_listings(said, bazaar):
    assert said() == {}


async def ask(settings, address: str) -> str:
    return await find_listing(settings, bundled_endpoints()[SLUG], address)


async def test_the_validator_says_whether_an_endpoint_is_listed(settings, validator):
    assert "not listed yet" in await ask(settings, validator(ACCEPTED))
    index = {"active": True, "lastCrawledAt": "2026-06-01T12:00:00Z"}
    listed = await ask(settings, validator(ACCEPTED | {"index": index}))
    assert listed == f"listed as {ADDRESS}, last crawled 2026-06-01T12:00:00Z"


REFUSALS = {
    "a failed check": (
        {
            "valid": False,
            "simulation": {"outcome": "rejected"},
            "preflight": [
                PASSED,
                {"check": "parse", "passed": False, "severity": "required", "detail": "no info"},
                {"check": "output", "passed": False, "severity": "advisory", "detail": "none"},
            ],
        },
        200,
        "rejects .*: parse: no info$",
    ),
    "a reason": (
        {"valid": True, "simulation": {"outcome": "rejected", "rejectionReason": "too old"}},
        200,
        "too old$",
    ),
    "no reason": ({}, 200, "no reason given$"),
    "odd types": (
        {"valid": 1, "simulation": [], "preflight": [5], "index": "x"},
        200,
        "no reason given$",
    ),
    "a list": ([], 200, "status 200 and no result$"),
    "no JSON": ("<html>", 200, "did not respond: "),
    "an error": ({"error": "x"}, 503, "status 503 and no result$"),
}


@pytest.mark.parametrize(("body", "status", "sentence"), REFUSALS.values(), ids=REFUSALS)
async def test_what_a_validator_refuses_is_said_in_its_own_words(
    settings, validator, body, status, sentence
):
    with pytest.raises(ValueError, match=sentence):
        await ask(settings, validator(body, status))


async def test_a_validator_that_is_not_there_is_one_sentence(settings):
    with pytest.raises(ValueError, match="the validator did not respond: "):
        await ask(settings, "http://127.0.0.1:1/validate")
