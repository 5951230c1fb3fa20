"""Summary of tests by package; without the packages, nothing here is collected."""

import importlib.metadata
import importlib.util
from collections import Counter

import pytest

from gateway_testing.fakes.server import FakeServer, serving

PACKAGES = {
    "openai": "openai",
    "gemini": "google-genai",
    "fal": "fal-client",
    "replicate": "replicate",
    "mistral": "mistralai",
    "llamaparse": "llama-cloud",
    "azure-documents": "azure-ai-documentintelligence",
    "docling": "docling-serve",
}
HAS_CLIENTS = importlib.util.find_spec("fal_client") is not None
collect_ignore_glob = [] if HAS_CLIENTS else ["test_*.py"]


@pytest.fixture(scope="module")
def server():
    with serving() as running:
        yield running


@pytest.fixture
def begin(server):
    """Begin a fake API with a scene, and return it."""
    begun = []

    def begin(api, submit="made", jobs="made"):
        fake = FakeServer(server, api)
        fake.begin()
        fake.set_answers(submit, jobs=(jobs,))
        begun.append(fake)
        return fake

    yield begin
    assert [mistake for fake in begun for mistake in fake.mistakes] == []


@pytest.fixture(autouse=True)
def _row(request, record_property):
    """Count a test for the adapter in its parameters."""
    values = getattr(getattr(request.node, "callspec", None), "params", {}).values()
    for adapter in (getattr(value, "adapter", value) for value in values):
        if isinstance(adapter, str) and adapter in PACKAGES:
            record_property("adapter", adapter)


def pytest_terminal_summary(terminalreporter):
    """Print a row for each adapter: its package, and how many tests passed and failed."""
    if not HAS_CLIENTS:
        return
    counts = Counter(
        (value, outcome)
        for outcome in ("passed", "failed", "error")
        for report in terminalreporter.stats.get(outcome, ())
        for name, value in getattr(report, "user_properties", ())  # a file's error has none
        if name == "adapter" and (report.when == "call" or outcome == "error")
    )
    write = terminalreporter.write_line
    write("| adapter | package | version | passed | failed |")
    write("|---|---|---|---|---|")
    for adapter, package in PACKAGES.items():
        failed = counts[adapter, "failed"] + counts[adapter, "error"]
        version = importlib.metadata.version(package)
        write(f"| {adapter} | {package} | {version} | {counts[adapter, 'passed']} | {failed} |")
