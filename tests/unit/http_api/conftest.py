"""A folder of declarations, and the gateway's catalog of it."""

import pytest

from gateway.plugins.manager import PluginManager
from gateway_testing.fakes.chain import settings_of

PHOTO = """
title = "Photo"
capability = "text-to-image"
price = "0.02"
request.url = "http://127.0.0.1:7860/make"
request.json = { prompt = "{prompt}", width = "{width}", height = "{height}" }
result = { kind = "base64", path = "images[0]", media_type = "image/png" }
"""


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "endpoints"
    found.mkdir()
    return found


@pytest.fixture
def catalog_of(folder, tmp_path):
    """Return a function that writes files, and returns the catalog by slug."""

    def make(**files):
        for slug, text in files.items():
            (folder / f"{slug.replace('_', '-')}.toml").write_text(text)
        values = {"http_endpoints": str(folder)}
        settings = settings_of(values, wallet="0x" + "11" * 20, data_dir=tmp_path)
        found = PluginManager().catalog(settings).everything()
        return {one.endpoint.slug: one for one in found if one.upstream.plugin == "gateway_http"}

    return make
