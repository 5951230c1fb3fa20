"""A gateway stopped at each step of a sale: a task, nothing taken, or a refund owed."""

import time

import attrs
import pytest

from tests.conftest import Payer
from tests.proof.process.gateway_process import PROMPT, until
from tests.proof.standstills.stopped_gateway import Buyer, Step, find_outcome

HOUR_S = 3600.0
# Longer than each lease, and shorter than an authorization is valid.
MINUTES_S = 120.0
KINDS = ("stopped", "suspended", "lagging")
full = pytest.mark.full
# With the outcome if the authorization has expired by then, and if it is still valid.
STEPS = {
    # Before T1: the transfer is simulated.
    "simulation": (Step(method="eth_call"), "nothing", "task"),
    # Its answer is from before, and good.
    "checked": (Step(method="eth_call", has_effect=True), "nothing", "task"),
    # Between T1 and T2 nothing is asked: the settlement relies on the check's simulation.
    # After T2: the transaction is stored.
    "unsent": (Step(method="eth_sendRawTransaction", is_reserved=True), "nothing", "task"),
    "sent": (
        Step(method="eth_sendRawTransaction", is_reserved=True, has_effect=True),
        "task",
        "task",
    ),
    "mined": (Step(method="eth_getTransactionReceipt", is_reserved=True), "task", "task"),
}
CASES = [
    pytest.param(
        attrs.evolve(step, kind=kind, gap_s=gap_s),
        outcome,
        id=f"{name}-{kind}-{gap_s:.0f}s",
        # One kind of each step, and each kind of one step.
        marks=[] if (name, kind, gap_s) in CHEAP else [full],
    )
    for CHEAP in [
        {
            ("simulation", "stopped", HOUR_S),
            ("checked", "suspended", HOUR_S),
            ("unsent", "stopped", HOUR_S),
            ("sent", "suspended", HOUR_S),
            ("mined", "lagging", MINUTES_S),
        }
    ]
    for name, (step, expired, valid) in STEPS.items()
    for kind in KINDS
    for gap_s, outcome in ((HOUR_S, expired), (MINUTES_S, valid))
]


def wait_and_set_clock(gateway, kind: str) -> None:
    if kind == "lagging":
        time.sleep(1)
        gateway.set_clock()


def count_mined(gateway, chain) -> int:
    """Return how many transactions of the settlement key are in blocks."""
    signers = {row[0] for row in gateway.rows("SELECT signer FROM sent_transactions")}
    counts = [chain.rpc.result("eth_getTransactionCount", one, "latest") for one in signers]
    return sum(int(count, 16) for count in counts)


@pytest.mark.parametrize(("step", "outcome"), CASES)
def test_a_sale_that_is_stopped_ends_well(stopped, chain, step, outcome):
    payer = Payer(chain)
    stopped.let_go()
    stopped.stop_at(step)
    buyer = Buyer(stopped, payer.header())
    buyer.start()
    stopped.wait_until_stopped()
    wait_and_set_clock(stopped, step.kind)
    assert find_outcome(stopped, payer, buyer.end()) == outcome
    assert count_mined(stopped, chain) <= 1
    if outcome == "nothing" and not step.is_reserved and step.kind != "lagging":
        # It was never stored. If the clock lags, the next simulation refuses it.
        assert stopped.rows("SELECT 1 FROM payments") == []
    until(lambda: stopped.events("process.recovered"))
    # It sells again.
    now = int(time.time() + stopped.gap_s)
    later = Payer(chain).header(valid_after=now - 60, valid_before=now + 300)
    stopped.bought(later)


@pytest.mark.parametrize(
    "kind", ["stopped", pytest.param("suspended", marks=full), pytest.param("lagging", marks=full)]
)
def test_an_authorization_from_before_is_judged_by_the_time_after(stopped, chain, kind):
    payer = Payer(chain)
    assert stopped.request("POST", "/api/x402/slow", {"prompt": PROMPT})[0] == 402
    expired = payer.header()
    stopped.stand_still(kind, HOUR_S)
    wait_and_set_clock(stopped, kind)
    buyer = Buyer(stopped, expired)
    buyer.start()
    answer = buyer.end()
    assert answer[1]["error"] == "invalid_exact_evm_payload_authorization_valid_before"
    assert find_outcome(stopped, payer, answer) == "nothing"


@pytest.mark.parametrize(
    "kind", [pytest.param("stopped", marks=full), pytest.param("suspended", marks=full), "lagging"]
)
def test_the_request_that_wakes_a_machine_buys(stopped, chain, kind):
    payer = Payer(chain)
    stopped.let_go()
    stopped.stand_still(kind, HOUR_S)
    assert stopped.request("POST", "/api/x402/slow", {"prompt": PROMPT})[0] == 402
    now = int(time.time() + stopped.gap_s)
    buyer = Buyer(stopped, payer.header(valid_after=now - 60, valid_before=now + 300))
    buyer.start()
    wait_and_set_clock(stopped, kind)
    assert find_outcome(stopped, payer, buyer.end()) == "task"
    assert set(buyer.statuses) <= {200, 503}


@pytest.mark.parametrize("is_recent", [True, pytest.param(False, marks=full)])
def test_a_clock_that_stays_behind_sells_nothing_and_charges_nothing(stopped, chain, is_recent):
    payer = Payer(chain)
    stopped.stand_still("lagging", HOUR_S / 2)
    now = int(time.time() + stopped.gap_s)
    after = now - 60 if is_recent else 0
    status, body = stopped.buy(payer.header(valid_after=after, valid_before=now + 300))
    # Both ask to try again later.
    assert status in (500, 503)
    assert "nothing was charged" in body["error"]
    assert stopped.rows("SELECT * FROM payments") == []


@pytest.mark.parametrize("kind", ["stopped", pytest.param("suspended", marks=full)])
def test_a_picture_that_is_drawn_meanwhile_is_delivered(stopped, chain, kind):
    payer = Payer(chain)
    task_id = stopped.bought(payer.header())
    until(stopped.calls)
    stopped.stand_still(kind, HOUR_S if kind == "suspended" else MINUTES_S)
    until(lambda: stopped.events("process.recovered"))
    stopped.let_go()
    assert stopped.task(task_id, wait_s=20)["status"] == "completed"
    assert len(stopped.calls()) == 1
