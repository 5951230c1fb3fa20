"""Fixtures of adapters' tests."""

import pytest
from http_declarations import KEY
from vendor_site import PlainJob

import gateway_http
from gateway import GenerationRequest
from gateway_testing.fakes.chain import settings_of


@pytest.fixture
async def seller(api):
    """The endpoint of the file's fake vendor."""
    found = api.seller()
    yield found
    await found.provider.close()


@pytest.fixture
async def declared(httpserver, tmp_path, monkeypatch):
    """Yield a function that returns the provider of a text, and a call of its `submit`."""
    monkeypatch.setenv("ACME_KEY", KEY)
    httpserver.no_handler_status_code = 404
    folder = tmp_path / "endpoints"
    folder.mkdir()
    opened = []

    def make(text):
        url = httpserver.url_for("").rstrip("/")
        (folder / "acme.toml").write_text(text.replace("URL", url))
        settings = settings_of(
            {"http_endpoints": str(folder)}, wallet="0x" + "11" * 20, data_dir=tmp_path
        )
        gateway_http.register_endpoints(lambda *pair: opened.append(pair), settings)
        endpoint, provider = opened[-1]

        async def submit(prompt="a boat", file=None):
            request = GenerationRequest(prompt=prompt, attachment=file)
            return await provider.submit(request, PlainJob(endpoint))

        return provider, submit

    make.folder = folder
    yield make
    for _, provider in opened:
        await provider.close()
