"""Contract of every store, as tests: subclass `StoreContract` and override its fixture `store`.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self):
            async with MyStore() as store:
                yield store

Needs pytest and pytest-asyncio. docs/payments.md has the rules that they test.
"""

from collections.abc import AsyncIterator

import pytest

from gateway.store import SqlStore
from tests.plugins.gateway_webhooks.queue_contract import WebhooksContract
from tests.store_contract.amounts import AmountsContract
from tests.store_contract.attempts import AttemptsContract
from tests.store_contract.batches import BatchesContract
from tests.store_contract.events import EventsContract
from tests.store_contract.operators import OperatorsContract
from tests.store_contract.payers import PayersContract
from tests.store_contract.payments import TakingContract
from tests.store_contract.pending import PendingContract
from tests.store_contract.provider_states import ProviderStatesContract
from tests.store_contract.settlements import SettlingContract
from tests.store_contract.tasks import WorkingContract


class StoreContract(
    TakingContract,
    PayersContract,
    AmountsContract,
    SettlingContract,
    BatchesContract,
    WorkingContract,
    AttemptsContract,
    EventsContract,
    PendingContract,
    WebhooksContract,
    OperatorsContract,
    ProviderStatesContract,
):
    """Every method of `SqlStore`: alone, repeated, late and concurrent."""

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    async def store(self) -> AsyncIterator[SqlStore]:
        """Yield an open, empty store."""
        raise NotImplementedError("override the fixture `store` with an open, empty store")
        yield  # noqa: PT022 - makes it the generator that overriding ones are
