"""Conditions that need the operator, each by its facts, worst first."""

import attrs
import pytest

from gateway.domain import Block
from gateway_operator.desk.conditions import Condition, find_conditions
from gateway_operator.desk.facts import EndpointFacts, Facts, KeyFacts
from gateway_operator.desk.last_seen import Seen
from gateway_operator.desk.running import Check
from gateway_operator.sql.current_state import Override, OwedNow, Waiting

NOW = 1_782_172_800.0
NOTHING = Waiting(count=0, since=None)
KEY = "0x" + "cd" * 20
ENDPOINT = EndpointFacts(
    slug="picture",
    provider="vendor",
    plugin="plugin",
    price_units=20_000,
    cost_micros=10_000,
    problem=None,
    is_account=False,
    off_since=None,
    next_try_at=None,
    is_switched_off=False,
    pause=None,
    price_override=None,
    cost_override=None,
    sold=0,
    uncosted=0,
    failed=0,
    recent_tasks=20,
)
OWED = OwedNow(
    undecided=0,
    undecided_units=0,
    undecided_since=None,
    moving=0,
    moving_units=0,
    failed=0,
    failed_units=0,
)
FACTS = Facts(
    at=NOW,
    checks=(Check(name="rpc", ok=True, stops="paid routes"),),
    selling="everything",
    owed=OWED,
    open_payments=NOTHING,
    waiting_tasks=NOTHING,
    running_tasks={},
    endpoints=(ENDPOINT,),
    keys=(),
    head=Seen(value=Block(number=1, hash="0x1", timestamp=int(NOW)), at=NOW),
    backup_at=NOW - 60,
    has_backup_url=True,
)


def seen(value: int | None) -> Seen:
    return Seen(value=value, at=NOW)


def find(**changes) -> list[Condition]:
    return find_conditions(attrs.evolve(FACTS, **changes))


def test_an_endpoint_that_nothing_checks_is_urgent_and_names_the_capability():
    problem = "no plugin declares the capability text-to-song"
    one = attrs.evolve(ENDPOINT, problem=problem, is_account=True, is_unchecked=True)
    found = only(endpoints=(one,))
    assert (found.condition, found.subject, found.level) == ("unchecked", "picture", "bad")
    assert "the capability text-to-song" in found.text
    assert find(endpoints=(attrs.evolve(one, is_switched_off=True),)) == []
    # Its fallback has the same capability, so that is one condition of each, not two.
    lent = attrs.evolve(one, fallback="spare", fallback_problem="nothing checks its results")
    assert only(endpoints=(lent,)).key == "unchecked:picture"


def only(**changes) -> Condition:
    (found,) = find(**changes)
    return found


def endpoint(**changes) -> dict:
    return {"endpoints": (attrs.evolve(ENDPOINT, **changes),)}


def owed(**changes) -> dict:
    return {"owed": attrs.evolve(OWED, **changes)}


def key(role: str = "refund", usdc: int | None = 10**9, **more) -> dict:
    made = KeyFacts(role=role, address=KEY, usdc=seen(usdc), wei=seen(10**15), **more)
    return {"keys": (made,)}


def test_a_gateway_that_is_well_needs_nobody():
    assert find() == []
    assert find(**key(lasts_for=1000)) == []


def test_a_failed_check_says_what_it_stops_in_its_own_words():
    check = Check(name="disk", ok=False, stops="everything", problem="3 MB free.")
    found = only(checks=(check,))
    assert (found.level, found.key) == ("bad", "check:disk")
    assert found.title == "Nothing is sold: disk"
    assert found.text == "3 MB free."


def test_a_machine_that_sells_nothing_by_its_role_needs_no_operator():
    mine = Check(name="role", ok=False, stops="everything", problem="This machine sells nothing.")
    assert find_conditions(attrs.evolve(FACTS, checks=(mine,))) == []
    nobody = attrs.evolve(mine, name="workers", problem="No machine makes what is sold.")
    assert only(checks=(mine, nobody)).title == "Nothing is sold: workers"


def test_endpoints_of_one_vendor_that_is_off_sale_are_one_condition():
    off = attrs.evolve(
        ENDPOINT,
        problem="The provider answers 401 invalid_api_key.",
        is_account=True,
        off_since=NOW - 5,
    )
    found = only(endpoints=(off, attrs.evolve(off, slug="sketch")))
    assert (found.level, found.key) == ("bad", "off_sale:vendor")
    assert found.title == "picture and sketch: off sale"
    assert "401 invalid_api_key." in found.text
    # A wrong key or an unpaid bill needs the operator.
    assert found.action.endswith("then press Try now.")
    assert "automatically" not in found.text + found.action


@pytest.mark.parametrize(("is_account", "level"), [(True, "warn"), (False, "note")])
def test_a_vendor_whose_orders_a_fallback_makes_is_not_off_sale(is_account, level):
    made = {"problem": "status 401", "is_account": is_account, "off_since": NOW - 3600}
    found = only(**endpoint(**made, fallback="spare", made_by="spare"))
    assert (found.level, found.key) == (level, "fallback_used:picture")
    assert found.title == "picture is made by spare"
    assert found.text.startswith("Its own vendor has failed for 1")
    assert found.action.endswith("then press Try now.") is is_account


def test_a_fallback_that_does_not_fit_is_soon_even_before_it_is_needed():
    unfit = endpoint(fallback="spare", fallback_problem="it does not take .pdf files")
    found = only(**unfit)
    assert (found.level, found.key) == ("warn", "fallback_unusable:picture")
    assert "does not take .pdf files" in found.text


def test_what_is_unknown_of_a_fallback_is_said_as_long_as_it_lasts():
    found = only(**endpoint(fallback="spare", fallback_doubts="Its cost is not known."))
    assert (found.level, found.key) == ("note", "fallback_doubts:picture")
    assert found.text == "Its cost is not known."


def test_a_vendor_that_stumbles_becomes_urgent_after_a_while():
    off = {"problem": "Transient", "off_since": NOW - 30}
    assert only(**endpoint(**off)).level == "warn"
    assert "tried again automatically" in only(**endpoint(**off)).action
    assert only(**endpoint(**off | {"off_since": NOW - 3600})).level == "bad"


@pytest.mark.parametrize("change", [{"is_switched_off": True}])
def test_what_the_settings_switched_off_needs_nobody(change):
    assert find(**endpoint(problem="down", off_since=NOW, **change)) == []


def test_refunds_to_decide_say_how_many_how_much_and_what_the_key_holds():
    due = owed(undecided=14, undecided_units=1_120_000, undecided_since=NOW - 1680)
    found = only(**due, **key(usdc=4_920_000))
    assert (found.level, found.title) == ("warn", "14 refunds to decide, 1.12 USDC")
    assert found.text == "The oldest waits for 28 min. The refund key holds 4.92 USDC."
    assert found.href == "/admin/refunds"
    assert "There is no refund key." in only(**due).text
    # Unknown is not zero.
    assert "unknown" in only(**due, **key(usdc=None)).text


def test_a_refund_that_waits_for_a_day_is_told():
    due = owed(undecided=1, undecided_units=1, undecided_since=NOW - 90_000)
    assert only(**due).raises_alarm
    due = owed(undecided=1, undecided_units=1, undecided_since=NOW - 80_000)
    assert not only(**due).raises_alarm


def test_a_key_that_holds_less_than_is_owed_says_where_to_send_it():
    due = owed(moving=1, moving_units=50_000)
    found = only(**due, **key(usdc=20_000))
    assert (found.level, found.key) == ("bad", "refund_key:usdc")
    assert KEY in found.action


@pytest.mark.parametrize(
    ("left", "level", "title"),
    [
        (199, "warn", "Gas for about 199 settlements left"),
        (19, "bad", "Gas for about 19 settlements left"),
        (1, "bad", "Gas for about 1 settlement left"),
        (0, "bad", "Not enough gas for a settlement"),
    ],
)
def test_gas_is_counted_in_settlements(left, level, title):
    found = only(**key("settlement", lasts_for=left))
    assert (found.level, found.condition, found.title) == (level, "gas", title)


def test_gas_that_is_not_known_is_no_alarm():
    assert find(**key("settlement", lasts_for=None)) == []


def test_an_open_payment_and_a_full_queue_need_somebody_after_a_while():
    late = Waiting(count=2, since=NOW - 300)
    assert only(open_payments=late).title == "2 payments without an outcome"
    assert only(waiting_tasks=late).title == "2 paid tasks in the queue"
    assert find(open_payments=Waiting(count=1, since=NOW - 5)) == []


def test_an_open_payment_says_who_must_tell_its_outcome():
    late = Waiting(count=2, since=NOW - 300)
    by_chain = only(open_payments=late).text
    assert by_chain.endswith("The chain has not confirmed or ruled out the payment yet.")
    by_voucher = only(open_payments=late, open_by_method={"voucher": 2}).text
    assert "chain" not in by_voucher
    assert "voucher has not confirmed or refused the payment and is asked again." in by_voucher
    both = only(open_payments=late, open_by_method={"voucher": 1}).text
    assert "The chain has not confirmed" in both
    assert "Without a plugin for it the payment stays open." in both


def test_an_endpoint_sold_below_its_cost_is_urgent():
    found = only(**endpoint(cost_micros=40_000))
    assert (found.level, found.key) == ("bad", "margin:picture")
    assert "costs 0.04 US dollars and is sold for 0.02 USDC" in found.text


def test_an_unknown_cost_is_a_notice_once_something_was_sold():
    assert find(**endpoint(cost_micros=None)) == []
    assert only(**endpoint(cost_micros=None, uncosted=3)).title == "Margin unknown"


def test_failures_name_how_many_of_how_many():
    assert only(**endpoint(failed=5)).title == "picture fails: 5 of its last 20"
    assert only(**endpoint(failed=15)).level == "bad"


def test_a_pause_says_why_and_can_be_ended():
    pause = Override(
        slug="picture", field="paused", value="true", at=NOW - 60, actor="me", reason="too slow"
    )
    found = only(**endpoint(pause=pause))
    assert (found.level, found.button) == ("note", "Resume")
    assert found.text == "Since 1 min. Reason: too slow"


def test_an_old_block_and_a_silent_chain_are_told():
    old = Seen(value=Block(number=1, hash="0x1", timestamp=int(NOW - 120)), at=NOW)
    assert only(head=old).key == "clock:"
    silent = Seen(value=None, at=None, problem="No RPC endpoint answers.")
    assert only(head=silent, checks=None).title == "The chain does not answer"


def test_a_backup_that_is_missing_or_old_is_told():
    assert only(backup_at=None, has_backup_url=False).level == "note"
    assert only(backup_at=None).level == "warn"
    assert only(backup_at=NOW - 2 * 86_400).level == "bad"


def test_the_worst_comes_first_and_every_condition_has_one_button():
    found = find(
        **owed(undecided=1, undecided_units=1, undecided_since=NOW, failed=1, failed_units=1),
        backup_at=None,
        has_backup_url=False,
    )
    assert [one.level for one in found] == ["bad", "warn", "note"]
    assert all(one.button and one.href.startswith("/admin") for one in found)
    assert len({one.key for one in found}) == len(found)


def test_an_endpoint_that_lost_money_of_late_is_told():
    assert find(**endpoint(margin_units=0)) == []
    assert find(**endpoint(margin_units=None)) == []
    found = only(**endpoint(margin_units=-5_000))
    assert (found.level, found.key) == ("warn", "margin_of_late:picture")
    assert "0.005" in found.text


DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("days", "level"), [(31, None), (30, "warn"), (1, "warn"), (0, "bad"), (-40, "bad")]
)
def test_a_model_that_retires_is_told_thirty_days_ahead(days, level):
    at = NOW + days * DAY_S
    one = attrs.evolve(ENDPOINT, model="old-1", retires_at=at, is_retired=days <= 0)
    found = find_conditions(attrs.evolve(FACTS, endpoints=(one,)))
    assert [(each.key, each.level) for each in found] == (
        [] if level is None else [("retires:picture", level)]
    )
    assert all("old-1" in each.text for each in found)
    assert one.sells == (days > 0)
    off = attrs.evolve(one, is_switched_off=True)
    assert find_conditions(attrs.evolve(FACTS, endpoints=(off,))) == []


SETTLEMENT = Check(name="settlement", ok=False, stops="x402", problem="It holds 0.0 ETH")


def test_gas_that_stops_settlements_is_one_card_with_its_remedy():
    found = only(checks=(SETTLEMENT,), **key("settlement", lasts_for=0))
    assert (found.condition, found.level) == ("gas", "bad")
    assert found.title == "x402 stopped: not enough gas for a settlement"
    assert found.action == f"Send ETH on Base to {KEY}."


def test_an_rpc_endpoint_that_stops_settlements_is_one_card():
    rpc = Check(name="rpc", ok=False, stops="paid routes", problem="Endpoint 1: it is down")
    found = only(checks=(rpc, SETTLEMENT))
    assert (found.key, found.text) == ("check:rpc", "Endpoint 1: it is down.")
    # Another cause keeps its card.
    assert only(checks=(SETTLEMENT,), **key("settlement", lasts_for=10**6)).key == (
        "check:settlement"
    )
