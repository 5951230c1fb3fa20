"""The bundled providers without an API pass the applicable scenes of the kit."""

import pytest

import gateway_documents
import gateway_sandbox_image
from gateway.testing import ProviderContract


class TestSandboxImage(ProviderContract):
    plugin = gateway_sandbox_image
    api = None
    values = {"sandbox": True}  # noqa: RUF012 - read only

    @pytest.mark.full  # eleven pictures; providers/test_sandbox_image.py draws the choices, too
    async def test_every_choice_on_sale_works(self, gateway):
        await super().test_every_choice_on_sale_works(gateway)


class TestSandboxImageEdit(ProviderContract):
    plugin = gateway_sandbox_image
    api = None
    slug = gateway_sandbox_image.EDIT.slug
    values = {"sandbox": True}  # noqa: RUF012 - read only


class TestSandboxExtract(ProviderContract):
    plugin = gateway_documents
    api = None
    slug = gateway_documents.EXTRACT.slug
    values = {"sandbox": True}  # noqa: RUF012 - read only


class TestDocuments(ProviderContract):
    plugin = gateway_documents
    api = None
