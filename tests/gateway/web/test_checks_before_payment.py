"""Checks before payment: limited by kind and in time, and never billed."""

import attrs
import pytest
import structlog
from document_sales import buy_parsing, pdf_of

from gateway import AccountProblem, Traits, Transient, hookimpl
from gateway.running.timing import Timing
from gateway.sandbox import Sandbox, SandboxLimits
from tests.conftest import PNG, ScriptedPlugin, running


class Counting(ScriptedPlugin):
    """Sells documents of up to five pages, and pictures of documents."""

    @hookimpl
    def register_endpoints(self, register, settings):
        def counted(endpoint, provider):
            if endpoint.takes_file:
                endings = (".pdf", ".png", ".jpg", ".bmp", ".heif", ".docx", ".txt")
                endpoint = attrs.evolve(endpoint, max_pages=5, file_extensions=endings)
            register(endpoint, provider)

        super().register_endpoints(counted, settings)


@pytest.fixture
async def counting(settings, provider, chain):
    async with running(settings, more=[Counting(provider)]) as gateway:
        yield gateway


@pytest.mark.parametrize(
    "name", ["scan.png", "scan.jpg", "scan.bmp", "scan.heif", "scan.docx", "SCAN.TXT"]
)
async def test_a_pdf_of_another_name_is_not_sold_at_the_price_of_one_page(counting, name):
    for data in (pdf_of(200), b"\n" * 1000 + pdf_of(200)):
        answer = await buy_parsing(counting, None, "paper", data, name=name)
        assert answer.status_code == 400
        assert "it is something else" in (await answer.get_json())["error"]


async def test_what_is_what_its_name_says_is_for_sale(counting):
    for name, data in (("a.png", PNG), ("a.txt", b"BM, RIFF and %PDF"), ("a.pdf", pdf_of(5))):
        answer = await buy_parsing(counting, None, "paper", data, name=name)
        assert answer.status_code == 402
    assert (await buy_parsing(counting, None, "paper", pdf_of(6))).status_code == 400


async def test_a_provider_that_limits_pages_itself_gets_what_the_gateway_cannot_count(
    counting, provider
):
    async def sell(data):
        return (await buy_parsing(counting, None, "paper", data)).status_code

    broken = pdf_of(3) + b"\0" * 2000
    assert await sell(broken) == 400
    counting.services.catalog["paper"].upstream.traits = Traits(limits_pages=True)
    assert await sell(broken) == 402


async def test_a_document_that_is_counted_for_too_long_is_answered_all_the_same(counting):
    counting.services.timing = Timing(validation_s=0.2)
    counting.services.intake.pages._sandbox = Sandbox(
        function="page_counters:sleep", limits=SandboxLimits(wall_s=5.0)
    )
    answer = await buy_parsing(counting, None, "paper", pdf_of(1))
    body = await answer.get_json()
    assert (answer.status_code, body["code"]) == (500, "EXECUTION_ERROR")
    assert "cannot be checked now" in body["error"]


@pytest.mark.parametrize(
    "error", [Transient("503"), AccountProblem("401"), KeyError("x"), SystemExit(1)], ids=repr
)
async def test_a_providers_check_that_fails_is_no_internal_error(settings, provider, chain, error):
    async def validate(request, endpoint):
        raise error

    provider.validate = validate
    with structlog.testing.capture_logs() as lines:
        async with running(settings, provider) as gateway:
            answer = await gateway.client.post("/api/x402/picture", json={"prompt": "x"})
            body = await answer.get_json()
    assert (answer.status_code, body["code"]) == (500, "EXECUTION_ERROR")
    assert "cannot be checked now" in body["error"]
    logged = [line for line in lines if line["event"] == "request.not_validated"]
    assert [line["slug"] for line in logged] == ["picture"]
