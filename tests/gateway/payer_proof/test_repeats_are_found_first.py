"""A paid request whose answer was lost is sent again: its task comes before any refusal."""

import pytest

from tests.conftest import running
from tests.gateway.methods.tickets import TicketPlugin, Tickets, soon
from tests.gateway.payer_proof.lost_answers import DOORS, REFUSALS, EditPlugin

UNCHARGED = "nothing was charged"


@pytest.fixture
async def studio(settings, provider, rpc, clock):
    tickets = TicketPlugin(Tickets(proof={"payer": "ann"}))
    more = [EditPlugin(provider), tickets]
    async with running(settings.changed(mpp_enabled=True), more=more, now=clock) as gateway:
        soon(gateway)
        gateway.chain = rpc
        await gateway.services.payments.cutoff_block()
        yield gateway


@pytest.mark.parametrize("refuse", REFUSALS, ids=lambda refuse: refuse.__name__)
async def test_a_repeat_gets_its_task_whatever_would_refuse_it_now(studio, payer, refuse):
    bought, fresh = {}, {}
    for pay in DOORS:
        send = await pay(studio, payer, "a.key")
        status, body = await send()
        assert status == 200, (pay.__name__, body)
        bought[pay.__name__] = send, body["taskId"]
        fresh[pay.__name__] = await pay(studio, payer, "another.key")
    count = await studio.services.store.counts()
    refuse(studio)
    for name, (send, task_id) in bought.items():
        status, body = await send()
        assert (status, body.get("taskId")) == (200, task_id), (name, body)
    # The refusal is one: the same request with an unused payment meets it.
    refused = [name for name, send in fresh.items() if (await send())[0] != 200]
    assert refused, refuse.__name__
    assert sum((await studio.services.store.counts())["payments"].values()) == (
        sum(count["payments"].values()) + len(fresh) - len(refused)
    )
