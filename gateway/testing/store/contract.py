"""What every store must do, as tests: subclass `StoreContract` and override its fixture `store`.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self):
            async with MyStore() as store:
                yield store

Needs pytest and pytest-asyncio. docs/payments.md has the law that they test.
"""

from collections.abc import AsyncIterator

import pytest

from gateway.store import SqlStore
from gateway.testing.store.batches import BatchesContract
from gateway.testing.store.operators import OperatorsContract
from gateway.testing.store.payers import PayersContract
from gateway.testing.store.payments import TakingContract
from gateway.testing.store.provider_states import ProviderStatesContract
from gateway.testing.store.settlements import SettlingContract
from gateway.testing.store.tasks import WorkingContract
from gateway.testing.store.webhooks import WebhooksContract


class StoreContract(
    TakingContract,
    PayersContract,
    SettlingContract,
    BatchesContract,
    WorkingContract,
    WebhooksContract,
    OperatorsContract,
    ProviderStatesContract,
):
    """Every method of `SqlStore`, alone, repeated, late and in races."""

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    async def store(self) -> AsyncIterator[SqlStore]:
        """Yield an open, empty store."""
        raise NotImplementedError("override the fixture `store` with an open, empty store")
        yield  # noqa: PT022 - makes it the generator that overriding ones are
