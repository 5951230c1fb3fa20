"""Make one now: asked for first, one at a time, audited, shown, and no sale."""

import asyncio

import pytest

from gateway import AccountProblem, Result
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.sql.trials import MOST_AN_HOUR
from gateway_operator.state import Operator
from gateway_operator.trials import Trials
from tests.plugins.gateway_operator.app.operator import actions_of, log_in, post, text_of

PICTURE = "/admin/endpoints/picture"
API = "/admin/api/v1/endpoints/picture"


@pytest.fixture
async def gateway(gateway):
    await log_in(gateway)
    return gateway


async def make(gateway, **form):
    """Begin one, and wait for its end."""
    answer = await post(gateway, f"{PICTURE}/make", **form)
    await ended(gateway)
    return answer


async def ended(gateway):
    if (task := gateway.services.find(Operator).trials._task) is not None:
        await asyncio.wait([task])


async def test_it_asks_first_makes_one_and_shows_it(gateway, provider):
    text = await text_of(await gateway.client.get(f"{PICTURE}/make"))
    assert "Your vendor bills you an amount that is not known." in text
    assert "A small red boat on a calm sea" in text
    assert provider.requests == []
    answer = await make(gateway, request="one")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{PICTURE}/made")
    (request,) = provider.requests
    assert request.resolution == "1K"
    page = await (await gateway.client.get(f"{PICTURE}/made")).get_data(as_text=True)
    assert "It works: image/png of 1 x 1" in page
    assert 'src="data:image/webp;base64,' in page
    made, began = (await actions_of(gateway))[:2]
    assert (began.action, made.action) == ("endpoint.make", "endpoint.made")
    assert made.after["ok"] is True
    # The same form again makes nothing, and leaves the result.
    assert (await make(gateway, request="one")).status_code == 303
    assert len(provider.requests) == 1
    assert "It works" in await text_of(await gateway.client.get(f"{PICTURE}/made"))


async def test_it_is_no_sale_and_in_no_book(gateway):
    before = await _counts(gateway)
    await make(gateway)
    assert await _counts(gateway) == before == [0, 0]
    assert "Nothing was sold yet." in await text_of(await gateway.client.get("/admin"))


async def _counts(gateway):
    def count(db):
        return [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _TABLES]

    return await gateway.services.store.sum(count)


_TABLES = ("tasks", "payments")


async def test_a_failure_is_shown_and_takes_nothing_off_sale(gateway, provider):
    provider.script = [AccountProblem("The bill is not paid.", scope="vendor")]
    await make(gateway)
    text = await text_of(await gateway.client.get(f"{PICTURE}/made"))
    assert "It failed: AccountProblem: The bill is not paid." in text
    assert (await actions_of(gateway, "endpoint.made"))[0].after["ok"] is False
    assert gateway.services.catalog["picture"].sells_now


async def test_one_at_a_time_and_not_beside_a_full_vendor(gateway, provider):
    go_on = asyncio.Event()

    async def wait(*_):
        await go_on.wait()
        return Result(text="late")

    provider.script = [wait]
    assert (await post(gateway, f"{PICTURE}/make")).status_code == 303
    assert "It is being made since" in await text_of(await gateway.client.get(f"{PICTURE}/made"))
    for path in (PICTURE, "/admin/endpoints/paper"):
        answer = await post(gateway, f"{path}/make")
        assert answer.status_code == 409
        assert "One of picture is being made" in await text_of(answer)
    go_on.set()
    await ended(gateway)
    gateway.services.catalog["picture"].upstream.pause_as_requested(60, long_wait_s=100)
    answer = await post(gateway, f"{PICTURE}/make")
    assert "no room beside paid work" in await text_of(answer)


async def test_ten_in_an_hour(gateway, provider, clock):
    for _ in range(MOST_AN_HOUR):
        await note(gateway, "endpoint.make")
        await note(gateway, "endpoint.made", ok=True, found="text", costMicros=None)
    answer = await make(gateway)
    assert (answer.status_code, provider.requests) == (409, [])
    assert "within an hour. Try again in 60 minutes" in await text_of(answer)
    clock.offset_s += 3_601
    assert (await make(gateway)).status_code == 303
    assert len(provider.requests) == 1


async def test_a_stop_ends_it(gateway, provider):
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(*_):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    provider.script = [hang]
    await post(gateway, f"{PICTURE}/make")
    await started.wait()
    await gateway.services.find(Operator).trials.close()
    assert cancelled.is_set()
    # Other nodes need not wait for its timeout.
    assert (await actions_of(gateway, "endpoint.made"))[0].after["ok"] is False


async def note(gateway, action, **after):
    """Write what another node writes."""
    desk = gateway.services.find(Operator).desk
    actor = Actor(door="page", name="ada")
    await desk.records.note(
        NewAction(actor=actor, at=desk.now(), action=action, subject="picture", after=after or None)
    )


async def test_one_at_a_time_of_all_nodes_and_what_another_began_is_shown(gateway, provider, clock):
    await note(gateway, "endpoint.make")
    answer = await post(gateway, f"{PICTURE}/make")
    assert answer.status_code == 409
    assert "One of picture is being made" in await text_of(answer)
    text = await text_of(await gateway.client.get(f"{PICTURE}/made"))
    assert "on another node, or before a restart" in text
    assert "It is being made since" in text
    made = await (await gateway.client.get(f"{API}/made")).get_json()
    assert (made["ok"], made["isElsewhere"]) == (None, True)
    await note(gateway, "endpoint.made", ok=True, found="image/png", costMicros=40_000)
    text = await text_of(await gateway.client.get(f"{PICTURE}/made"))
    assert "It works: image/png" in text
    assert provider.requests == []
    # One that never ended blocks until its timeout only.
    await note(gateway, "endpoint.make")
    clock.offset_s += gateway.services.catalog["picture"].endpoint.timeout_s + 1
    assert "It failed" in await text_of(await gateway.client.get(f"{PICTURE}/made"))
    assert (await make(gateway)).status_code == 303
    assert len(provider.requests) == 1


async def test_a_form_that_is_sent_to_two_nodes_makes_one(gateway, provider):
    await make(gateway, request="one")
    gateway.services.find(Operator)._trials = Trials()
    assert (await make(gateway, request="one")).status_code == 303
    assert len(provider.requests) == 1
    assert "It works" in await text_of(await gateway.client.get(f"{PICTURE}/made"))


async def test_a_document_gets_a_small_file_and_shows_its_text(gateway, provider):
    text = await text_of(await gateway.client.get("/admin/endpoints/paper/make"))
    assert "live.pdf, made for this" in text
    await post(gateway, "/admin/endpoints/paper/make")
    await ended(gateway)
    text = await text_of(await gateway.client.get("/admin/endpoints/paper/made"))
    assert "# live.pdf" in text


async def test_the_api_makes_one_too(gateway, provider):
    assert (await gateway.client.get(f"{API}/made")).status_code == 404
    headers = {"Idempotency-Key": "k", "Sec-Fetch-Site": "same-origin"}
    answer = await gateway.client.post(f"{API}/make", headers=headers)
    assert answer.status_code == 202
    await ended(gateway)
    made = await (await gateway.client.get(f"{API}/made")).get_json()
    assert (made["ok"], made["slug"]) == (True, "picture")
    assert (made["picture"], made["costMicros"]) == ("", None)


async def test_strangers_and_other_sites_make_nothing(gateway, provider):
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    assert (await post(gateway, f"{PICTURE}/make", headers=foreign)).status_code == 403
    assert (await gateway.client.get("/admin/endpoints/none/make")).status_code == 400
    assert (await gateway.client.get(f"{PICTURE}/made")).status_code == 404
    gateway.client.cookie_jar.clear()
    assert (await post(gateway, f"{PICTURE}/make")).status_code == 401
    assert provider.requests == []
