"""Each vendor's own client works with the fake API that its adapter is tested against."""

from collections.abc import Callable

import attrs
import pytest

from gateway.testing import FakeApi
from gateway_testing.fakes.api import MARKDOWN, PNG
from tests.proof.kit.test_kit_azure_documents import AzureApi
from tests.proof.kit.test_kit_fal import FalApi
from tests.proof.kit.test_kit_gemini import GeminiApi
from tests.proof.kit.test_kit_llamaparse import LlamaParseApi
from tests.proof.kit.test_kit_mistral import MistralApi
from tests.proof.kit.test_kit_openai import OpenAIApi
from tests.proof.kit.test_kit_replicate import ReplicateApi
from tests.vendors import clients


@attrs.frozen
class Client:
    """A vendor's client, the fake of its API, and its expected result."""

    adapter: str
    buy: Callable[[str], object]
    api: type[FakeApi]
    bought: object

    @property
    def has_jobs(self):
        return self.api.accepted is not FakeApi.accepted

    def begin(self, begin, end="made"):
        """Begin the API with the answer that ends a purchase."""
        if self.has_jobs:
            return begin(self.api(), "accepted", jobs=f"waiting {end}")
        return begin(self.api(), end)


CLIENTS = [
    Client("openai", clients.by_openai, OpenAIApi, PNG),
    Client("gemini", clients.by_genai, GeminiApi, PNG),
    Client("gemini", clients.by_genai_beta, GeminiApi, PNG),
    # The client asks twice whether a job is done, and every answer has a new link.
    Client("fal", clients.by_fal, FalApi, "https://v3.fal.media/made/3.png"),
    Client(
        "replicate", clients.by_replicate, ReplicateApi, "https://replicate.delivery/made/1.png"
    ),
    Client("mistral", clients.by_mistral, MistralApi, MARKDOWN),
    Client("llamaparse", clients.by_llama_cloud, LlamaParseApi, MARKDOWN),
    Client("azure-documents", clients.by_azure, AzureApi, MARKDOWN),
]
EACH = pytest.mark.parametrize("client", CLIENTS, ids=lambda one: one.buy.__name__)
EACH_WITH_JOBS = pytest.mark.parametrize(
    "client", [one for one in CLIENTS if one.has_jobs], ids=lambda one: one.adapter
)


@EACH
def test_it_buys(client, begin):
    fake = client.begin(begin)
    assert client.buy(fake.url) == client.bought
    assert len(fake.submitted) == 1


@EACH
def test_it_says_that_the_key_is_refused(client, begin):
    fake = begin(client.api(), "account", jobs="account")
    fake.set_answers(others="account")
    with pytest.raises(clients.HTTP_ERRORS) as raised:
        client.buy(fake.url)
    assert status_of(raised.value) in (400, 401)


@EACH_WITH_JOBS
def test_it_says_that_a_job_failed(client, begin):
    fake = client.begin(begin, "failed")
    with pytest.raises((clients.JobFailed, *clients.HTTP_ERRORS)):
        client.buy(fake.url)
    assert len(fake.submitted) == 1


@pytest.mark.parametrize("adapter", ["gemini", "openai"])
def test_it_says_that_the_content_was_refused(adapter, begin):
    client = next(one for one in CLIENTS if one.adapter == adapter)
    fake = client.begin(begin, "moderated")
    with pytest.raises((clients.JobFailed, *clients.HTTP_ERRORS)):
        client.buy(fake.url)


def status_of(error):
    """HTTP status of a client's error, which every client names differently."""
    for name in ("status_code", "status", "code"):
        if isinstance(found := getattr(error, name, None), int):
            return found
    return error.response.status_code
