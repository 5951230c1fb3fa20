"""The pages of tasks: search, history, and views of results for a reason."""

import pytest

from gateway import ContentPolicy, Handle, Transient
from gateway.errors import NotFound, WrongValue
from gateway_operator.desk.tasks import find_task, list_tasks, make_filter
from gateway_operator.state import Operator
from tests.conftest import Payer, buy, running
from tests.plugins.gateway_operator.app.operator import SAME, actions_of, log_in, post, text_of


@pytest.fixture
async def gateway(gateway):
    await log_in(gateway)
    return gateway


@pytest.fixture
def desk(gateway):
    return gateway.services.find(Operator).desk


async def bought(gateway, payer, **fields) -> dict:
    answer = await buy(gateway, payer.header(), **fields)
    return await gateway.wait((await answer.get_json())["taskId"])


async def found(desk, **given) -> list[str]:
    page = await list_tasks(desk, make_filter(**given))
    return [one.row.id for one in page.tasks]


async def test_a_task_is_found_by_its_id_its_transaction_its_payer_and_its_job(
    gateway, desk, chain, payer, provider
):
    async def as_job(_, job):
        await job.save(Handle(id="Job-7/ä"))
        raise ContentPolicy("No boats.")

    provider.script = [as_job]
    task = await bought(gateway, payer)
    other = await bought(gateway, Payer(chain))
    facts = (await find_task(desk, task["taskId"])).facts
    for text in (
        task["taskId"],
        facts.own.paid_tx,
        facts.own.paid_tx.upper().replace("X", "x"),
        payer.account.address,
        "Job-7/ä",
    ):
        assert await found(desk, q=f" {text} ") == [task["taskId"]]
    tx_hash, address = facts.own.paid_tx, payer.account.address
    for text in (
        task["taskId"][:8],
        tx_hash[:6],
        f"{tx_hash[:6]}…{tx_hash[-4:]}",
        f"{address[:6]}...{address[-4:]}",
        address[:10],
    ):
        assert task["taskId"] in await found(desk, q=text), text
    assert await found(desk, q=f"{tx_hash[:6]}…{'0' * 20}") == []
    assert await found(desk, q="nothing") == []
    assert await found(desk) == [other["taskId"], task["taskId"]]


async def test_filters_limit_the_list_by_state_endpoint_reason_payer_and_day(
    gateway, desk, clock, payer, provider
):
    provider.script = [ContentPolicy("No boats.")]
    failed = (await bought(gateway, payer))["taskId"]
    made = (await bought(gateway, payer))["taskId"]
    assert await found(desk, state="failed") == [failed]
    assert await found(desk, state="owed") == [failed]
    assert await found(desk, state="refunded") == []
    assert await found(desk, state="completed") == [made]
    assert await found(desk, slug="picture") == [made, failed]
    assert await found(desk, slug="paper") == []
    assert await found(desk, reason="content_policy") == [failed]
    assert await found(desk, payer=payer.account.address) == [made, failed]
    assert await found(desk, payer="0x" + "00" * 20) == []
    assert await found(desk, day="2020-01-31") == []
    day = (await text_of(await gateway.client.get("/admin/tasks"))) and _day_of(clock())
    assert await found(desk, day=day) == [made, failed]
    page = await list_tasks(desk, make_filter())
    assert (page.slugs, page.reasons) == (["picture"], ["content_policy"])


def _day_of(at: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


@pytest.mark.parametrize(
    "given", [{"state": "lost"}, {"day": "31.1.2026"}, {"day": "9999-12-31"}, {"q": "x" * 201}]
)
def test_a_filter_that_cannot_be_is_refused_with_a_sentence(given):
    with pytest.raises(WrongValue) as refused:
        make_filter(**given)
    assert str(refused.value).endswith(".")


async def test_pages_go_on_where_the_last_one_ended(gateway, desk, monkeypatch, payer):
    tasks = [(await bought(gateway, payer))["taskId"] for _ in range(5)][::-1]
    monkeypatch.setattr("gateway_operator.desk.tasks.PER_PAGE", 2)
    seen, before = [], ""
    for _ in range(3):
        page = await list_tasks(desk, make_filter(before=before))
        seen.append([one.row.id for one in page.tasks])
        before = page.next_before or ""
    assert seen == [tasks[:2], tasks[2:4], tasks[4:]]
    assert before == ""


async def test_the_page_of_a_task_tells_what_happened_in_order(gateway, desk, payer, provider):
    provider.script = [ContentPolicy("No boats.")]
    task = await bought(gateway, payer)
    titles = [one.title for one in (await find_task(desk, task["taskId"])).timeline]
    assert titles[0] == "Bought by x402"
    order = [
        "Bought by x402",
        "Settlement signed",
        "Paid: 0.02 USDC seen on-chain",
        "Attempt 1 begun",
        "Failed after 1 attempt",
    ]
    assert [title for title in titles if title in order] == order
    assert "Refund of 0.02 USDC owed" in titles
    text = await text_of(await gateway.client.get(f"/admin/tasks/{task['taskId']}"))
    for said in (
        "No boats.",
        "content policy",
        "Cost to you unknown",
        payer.account.address.lower(),
    ):
        assert said in text
    assert "Approve the refund" in text


async def test_the_page_of_a_task_shows_each_attempt(gateway, desk, clock, payer, provider):
    def fails(words):
        async def fail(*_):
            clock.offset_s += 7
            raise Transient(words)

        return fail

    async def dies(*_):
        # As the next start of a gateway whose process died.
        clock.offset_s += 5
        await gateway.services.store.queue.recover(now=clock())
        raise Transient("unheard")

    provider.script = [dies, fails("503 too busy"), fails("502 no model")]
    task = await bought(gateway, payer)
    detail = await find_task(desk, task["taskId"])
    found = [(one.number, one.outcome) for one in detail.attempts]
    assert found == [(1, "died"), (1, "failed"), (2, "failed"), (3, "completed")]
    assert all(one.ended_at - one.begun_at >= 5 for one in detail.attempts[:3])
    starts, ends = (
        [getattr(one, f"{name}_at") for one in detail.attempts] for name in ("begun", "ended")
    )
    assert starts == sorted(starts)
    assert all(end <= begin for end, begin in zip(ends, starts[1:], strict=False))
    assert [one.details for one in detail.attempts[1:3]] == ["provider_error"] * 2
    assert "restarted" in detail.attempts[0].message
    text = await text_of(await gateway.client.get(f"/admin/tasks/{task['taskId']}"))
    assert "unheard" not in text
    order = [
        "Attempt 1 begun",
        "Attempt 1 broken off",
        "Attempt 1 begun again",
        "Attempt 1 failed",
        "503 too busy",
        "Attempt 2 begun",
        "Attempt 2 failed",
        "502 no model",
        "Attempt 3 begun",
        "Completed",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


async def test_a_task_of_an_earlier_release_says_which_attempts_are_not_recorded(
    gateway, desk, payer, provider
):
    task_id = (await bought(gateway, payer))["taskId"]
    await gateway.services.store.write(
        lambda db: (
            db.execute(
                "UPDATE tasks SET attempt = 3, begun_at = NULL, attempts = NULL WHERE id = ?",
                (task_id,),
            ).rowcount
        )
    )
    timeline = (await find_task(desk, task_id)).timeline
    (begun,) = [one for one in timeline if one.title == "Attempt 1 begun"]
    assert begun.text == "No record of attempts 1, 2"


async def test_a_refunded_sale_looks_refunded_in_list_and_detail(gateway, desk, payer, provider):
    provider.script = [ContentPolicy("No boats.")]
    task_id = (await bought(gateway, payer))["taskId"]
    await _refund(gateway, task_id)
    (listed,) = (await list_tasks(desk, make_filter())).tasks
    assert listed.state.is_refunded
    page = await (await gateway.client.get("/admin/tasks")).get_data(as_text=True)
    assert "refunded</span>" in page
    assert "<s>0.02</s>" in page
    text = await text_of(await gateway.client.get(f"/admin/tasks/{task_id}"))
    assert "Refund 0.02 USDC, refunded" in text
    # A second refund is not offered.
    assert "Approve the refund" not in text
    assert await found(desk, state="refunded") == [task_id]


async def _refund(gateway, task_id) -> None:
    """Write a refund as paid, as the sweep does once it is mined."""
    from gateway.domain import Decision

    ledger, now = gateway.services.store.refunds, gateway.services.now()
    case = await ledger.decide(task_id, Decision.APPROVED, recipient=None, note="", now=now)
    await ledger.begin(
        case.payment.id,
        None,
        sender="0x" + "11" * 20,
        recipient=case.recipient,
        search_from_block=0,
        cap_units=None,
        now=now,
    )
    assert await ledger.end(case.payment.id, "0x" + "22" * 32, now=now)


async def test_a_look_at_prompt_or_outputs_needs_a_reason_and_is_written_down(gateway, payer):
    task_id = (await bought(gateway, payer, prompt="a secret boat"))["taskId"]
    path = f"/admin/tasks/{task_id}"
    page = await (await gateway.client.get(path)).get_data(as_text=True)
    assert "secret boat" not in page
    assert "/files/" not in page
    assert (await post(gateway, f"{path}/look", what="prompt", reason=" ")).status_code == 400
    assert await actions_of(gateway, "prompt.look") == []

    shown = await post(
        gateway, f"{path}/look", what="prompt", reason="the buyer asked", request="a"
    )
    assert "a secret boat" in await text_of(shown)
    (row,) = await actions_of(gateway, "prompt.look")
    assert (row.subject, row.reason) == (task_id, "the buyer asked")
    assert "secret" not in str(row)

    answer = await post(gateway, f"{path}/look", what="outputs", reason="is it black?", request="b")
    page = await answer.get_data(as_text=True)
    link = page.split('href="/files/')[1].split('"')[0].replace("&amp;", "&")
    stranger = gateway.app.test_client()
    assert (await stranger.get(f"/files/{link}")).status_code == 200
    assert [row.subject for row in await actions_of(gateway, "output.look")] == [task_id]
    # The page shows the view, without the result.
    text = await text_of(await gateway.client.get(path))
    assert "Outputs viewed" in text
    assert "is it black?" in text


async def test_a_look_that_is_sent_twice_is_one_look(gateway, payer):
    task_id = (await bought(gateway, payer))["taskId"]
    form = {"what": "prompt", "reason": "why", "request": "same"}
    for _ in range(2):
        answer = await post(gateway, f"/admin/tasks/{task_id}/look", **form)
        assert "a boat" in await text_of(answer)
    assert len(await actions_of(gateway, "prompt.look")) == 1


async def test_outputs_that_were_deleted_are_not_linked(gateway, clock, payer):
    task_id = (await bought(gateway, payer))["taskId"]
    clock.offset_s += 400 * 86_400
    await log_in(gateway)
    answer = await post(gateway, f"/admin/tasks/{task_id}/look", what="outputs", reason="why")
    assert answer.status_code == 409
    assert "deleted" in await text_of(answer)


async def test_no_look_without_a_session_or_from_a_foreign_page(gateway, payer):
    task_id = (await bought(gateway, payer))["taskId"]
    path, form = f"/admin/tasks/{task_id}/look", {"what": "prompt", "reason": "why"}
    stranger = gateway.app.test_client()
    assert (await stranger.post(path, form=form, headers=SAME)).status_code == 401
    foreign = {"Origin": "https://evil.example"}
    assert (await gateway.client.post(path, form=form, headers=foreign)).status_code == 403
    for page in ("/admin/tasks", f"/admin/tasks/{task_id}"):
        assert (await stranger.get(page)).status_code == 401
    assert await actions_of(gateway, "prompt.look") == []


async def test_an_unknown_task_is_a_page_that_says_so(gateway, desk):
    with pytest.raises(NotFound):
        await find_task(desk, "nobody")
    answer = await gateway.client.get("/admin/tasks/nobody")
    assert answer.status_code == 404
    assert "There is no such task." in await text_of(answer)


async def test_an_empty_list_says_how_to_make_it_fuller(settings, provider):
    async with running(settings, provider) as gateway:
        await log_in(gateway)
        assert "gateway buy" in await text_of(await gateway.client.get("/admin/tasks"))
