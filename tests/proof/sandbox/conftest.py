"""Here each sandbox has its own processes, which are under test."""

import pytest

from gateway.domain import Attachment
from gateway.errors import InvalidInput
from gateway.sandbox.pages import Pages


@pytest.fixture(autouse=True)
def _own_processes(sandboxes_of_their_own: None) -> None:
    pass


@pytest.fixture(scope="module")
def pages():
    pages = Pages()
    yield pages
    pages.close()


async def charged_pages(pages, name, data):
    """Return the pages that the price counts; None if the file is refused."""
    try:
        return await pages.count(Attachment(name=name, data=data))
    except InvalidInput:
        return None
