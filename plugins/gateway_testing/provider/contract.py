"""Tests that every provider must pass: subclass `ProviderContract` and describe the API.

    class TestAcme(ProviderContract):
        plugin = gateway_acme
        api = AcmeApi

The tests use the plugin from outside: a real gateway sells it, with its queue on a real disk, and a
fake API on this machine responds as `AcmeApi` describes. A scene that does not apply is skipped
with a reason. Needs pytest, pytest-asyncio and pytest-httpserver.
"""

import contextlib
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio
import structlog
import typed_settings as ts
from pytest_httpserver import HTTPServer

from gateway.domain import Endpoint
from gateway.sandbox.kinds import ResultChecks
from gateway.settings import Settings
from gateway_testing.fakes.api import Ask, FakeApi
from gateway_testing.fakes.chain import settings_of
from gateway_testing.fakes.server import FakeServer, serving
from gateway_testing.provider.checks import accepting_answer, api_of, job_api_of
from gateway_testing.provider.gateway_under_test import (
    GatewayUnderTest,
    is_of,
    manager_with,
    problem_in,
    shortened_sleeps,
)
from gateway_testing.provider.jobs import JobScenes
from gateway_testing.provider.offers import OfferScenes
from gateway_testing.provider.refusals import RefusalScenes
from gateway_testing.provider.results import ResultScenes
from gateway_testing.provider.samples import PDF, sample_for
from gateway_testing.provider.submits import SubmitScenes

_NUMBER = re.compile(rb"[0-9]+")
# Longer ones are parts of ids.
_MAX_DIGITS = 7
_ADVICE = (
    "Ask the vendor for the pages up to `gateway.vendors.paid_pages(request, job.endpoint)` only: "
    "a file may have more pages than the gateway counted. Where the API has no such field, say so: "
    "lacks = ('page_range',)."
)
_WALLET = "0x" + "b2" * 20
_SUBMIT_ANSWERS = ("broken", "garbage", "account")
_ANSWERS = ("made", "moderated", "nothing", "failed", *_SUBMIT_ANSWERS)


class CapturedLogs(logging.Handler):
    """Collects log lines; pytest prints them for a failed test."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Collect a library's warning."""
        self.lines.append(self.format(record))

    def event(self, _: Any, method: str, event: MutableMapping[str, Any]) -> str:
        """Collect an event of the gateway, with its formatted exception."""
        shown = structlog.processors.format_exc_info(None, method, event)
        line = f"{method}: {dict(shown)}"
        self.lines.append(line)
        return line


@contextlib.contextmanager
def capture_logs() -> Iterator[CapturedLogs]:
    """Capture logs inside the block, and restore the configuration afterwards."""
    captured, before = CapturedLogs(), structlog.get_config()
    structlog.configure(
        processors=[captured.event],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=False,
    )
    logging.getLogger().addHandler(captured)
    try:
        yield captured
    finally:
        logging.getLogger().removeHandler(captured)
        structlog.configure(**before)


class LogScenes:
    """The log and the buyer's errors contain no secrets."""

    @pytest.mark.parametrize("end", _ANSWERS)
    async def test_no_log_line_and_no_buyer_learns_a_key_or_a_prompt(
        self,
        gateway: GatewayUnderTest,
        logs: CapturedLogs,
        secrets: tuple[str, ...],
        capfd: pytest.CaptureFixture[str],
        end: str,
    ) -> None:
        if gateway.server is not None or end != "made":
            server = job_api_of(gateway, end) if end == "failed" else api_of(gateway, end)
            is_job = accepting_answer(gateway) == "accepted" and end not in _SUBMIT_ANSWERS
            server.set_answers("accepted" if is_job else end, jobs=(end,))
        task = await gateway.buy_and_wait()
        # A gateway writes its log to standard output.
        printed = capfd.readouterr()
        log = "\n".join((*logs.lines, printed.out, printed.err))
        for secret in secrets:
            assert secret not in log, "The log shows a key. Keep it out of errors and log lines."
            assert secret not in f"{task.error}", (
                "The buyer's error shows a key. Keep it out of errors."
            )
        prompt = gateway.fields.get("prompt")
        assert prompt is None or prompt not in log, (
            "The log shows the buyer's prompt. Keep it out of errors and log lines."
        )


class PageScenes:
    """The page range that a document adapter requests."""

    async def test_the_vendor_is_asked_for_the_paid_pages_only(
        self, gateway: GatewayUnderTest
    ) -> None:
        server, endpoint = api_of(gateway, "page_range"), gateway.sold.endpoint
        if not gateway.sold.counts_pages or ".pdf" not in endpoint.file_extensions:
            pytest.skip("the endpoint counts no pages")
        server.set_answers(accepting_answer(gateway), jobs=("made",))
        for gateway.pages in (2, 3):
            await gateway.buy_and_wait(file_name="letter.pdf", file=PDF)
        two, three = (_numbers_in(ask) for ask in server.submitted)
        # Some vendors count from 0. Only the last page differs between the two orders.
        fewer, more = two - three, three - two
        assert any(fewer[last] and more[last + 1] for last in (1, 2)), _ADVICE


def _numbers_in(ask: Ask) -> Counter[int]:
    """Return how often each short number occurs in an order."""
    text = " ".join(ask.query.values()).encode() + b" " + ask.body
    return Counter(int(found) for found in _NUMBER.findall(text) if len(found) < _MAX_DIGITS)


class ProviderContract(
    OfferScenes, PageScenes, ResultScenes, JobScenes, SubmitScenes, RefusalScenes, LogScenes
):
    """All scenes of the contract: offers, pages, results, jobs, submits, refusals and logs."""

    pytestmark = pytest.mark.asyncio(loop_scope="class")

    plugin: Any
    """The module with the hooks."""

    api: type[FakeApi] | None
    """The vendor's API; None for a provider without one."""

    slug: ClassVar[str] = ""
    """The endpoint that the scenes buy. Empty: the first that the plugin registers."""

    values: ClassVar[Mapping[str, Any]] = {}
    """More settings, by their names in gateway.toml."""

    prompt: ClassVar[str] = "a lighthouse-keeper's boat"
    """The buyer's prompt."""

    file: ClassVar[tuple[str, bytes] | None] = None
    """The buyer's file, as name and bytes, for an endpoint that takes one. None: a small sample."""

    @pytest.fixture(scope="class")
    @classmethod
    def http_server(cls) -> Iterator[HTTPServer]:
        """Yield the server that all scenes share."""
        with serving() as server:
            yield server

    @pytest.fixture(scope="class")
    @classmethod
    def results(cls) -> Iterator[ResultChecks]:
        """Yield the checks of results. Scenes share their processes, which are slow to start."""
        results = ResultChecks()
        yield results
        results.close()

    @pytest.fixture
    def server(self, http_server: HTTPServer) -> Iterator[FakeServer | None]:
        """Yield the fake API, or None if the provider uses no API."""
        if not hasattr(type(self), "api"):
            pytest.fail(
                "Name the API that the provider uses: `api = AcmeApi`, a subclass of "
                "`gateway.testing.FakeApi`; or `api = None` if it uses none."
            )
        if self.api is None:
            yield None
            return
        if not self.api.submit:
            pytest.fail(
                f"Name the request of {self.api.__name__} that is billed: "
                "submit = 'POST /v1/pictures'."
            )
        server = FakeServer(http_server, self.api())
        server.begin()
        yield server
        server.end()

    @pytest.fixture
    def settings(self, server: FakeServer | None, tmp_path: Path) -> Settings:
        values = dict(self.values)
        if server is not None:
            values |= server.api.settings(server.url)
        return settings_of(values, wallet=_WALLET, data_dir=tmp_path)

    @pytest.fixture
    def secrets(self, settings: Settings) -> tuple[str, ...]:
        """Return the values of all secret settings."""
        fields = {
            name: field
            for section in manager_with(self.plugin).sections()
            for name, field in section.fields.items()
        }
        given = settings.plugin_values.items()
        return tuple(
            str(value)
            for name, value in given
            if name in fields and isinstance(fields[name].default, ts.SecretStr)
        )

    @pytest.fixture
    def logs(self) -> Iterator[CapturedLogs]:
        with capture_logs() as captured:
            yield captured

    @pytest_asyncio.fixture(loop_scope="class")
    async def gateway(
        self,
        settings: Settings,
        server: FakeServer | None,
        results: ResultChecks,
        logs: CapturedLogs,  # noqa: ARG002 - captures from the start
    ) -> AsyncIterator[GatewayUnderTest]:
        """Yield a running gateway that sells the plugin's endpoints."""
        endpoint = self._endpoint(settings)
        gateway = GatewayUnderTest(
            plugin=self.plugin,
            settings=settings,
            slug=endpoint.slug,
            fields=self._fields(endpoint),
            results=results,
            server=server,
        )
        with shortened_sleeps():
            await gateway.start()
            try:
                yield gateway
            finally:
                await gateway.stop()
                gateway.reimporter.restore()

    def _endpoint(self, settings: Settings) -> Endpoint:
        """Return the endpoint that the scenes buy."""
        name = self.plugin.__name__
        try:
            manager = manager_with(self.plugin)
            everything = manager.catalog(settings).everything()
            problem = problem_in(manager, self.plugin)
        except Exception as error:  # noqa: BLE001 - a hook may raise anything
            problem = f"{type(error).__name__}: {error}"
        if problem is not None:
            pytest.fail(f"The gateway does not take {name}: {problem}")
        own = [one.endpoint for one in everything if is_of(self.plugin, one.upstream)]
        found = [one for one in own if self.slug in ("", one.slug)]
        if not found:
            slugs = ", ".join(one.slug for one in own) or "none"
            pytest.fail(
                f"{name} registers no endpoint {self.slug!r} with these settings. It registers: "
                f"{slugs}. Is everything set that your hook asks for? See `settings` of your "
                "FakeApi, and `values`."
            )
        return found[0]

    def _fields(self, endpoint: Endpoint) -> dict[str, Any]:
        """Return the fields of a buyer's request."""
        fields: dict[str, Any] = {}
        if endpoint.reads_prompt:
            fields["prompt"] = self.prompt
        if endpoint.takes_file:
            fields["file_name"], fields["file"] = self.file or sample_for(endpoint)
        return fields
