"""What happens to the price of a failed generation is said by one function."""

import attrs
import pytest

from gateway.domain import Decision, PaymentState, Refund
from gateway.domain.failure_reasons import failure_in_words
from gateway.domain.refund_promise import RefundPromise, promise_in_words

KINDS = ("automatic", "review", "none")
DUE = Refund(state=PaymentState.REFUND_DUE, amount_units=20_000, tx_hash=None)
APPROVED = attrs.evolve(DUE, decision=Decision.APPROVED)


def promise(kind: str, contact: str = "") -> RefundPromise:
    return RefundPromise(
        on_failure=kind, policy_url="http://gateway.test/llms.txt", contact=contact
    )


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("automatic", "sends the price back to the payer automatically", "sends it automatically"),
        ("review", "the operator decides", "the operator decides"),
        ("none", "this gateway cannot send one", "this gateway cannot send one"),
    ],
)
def test_the_sentences_before_and_after_a_sale_say_the_same(kind, before, after):
    assert before in promise(kind).sentence
    words = promise(kind).describe_refund(DUE)
    assert words.startswith("It is due back to you")
    assert after in words


def test_an_automatic_refund_says_which_payments_are_not_automatic():
    assert "payments that the payer did not sign" in promise("automatic").sentence


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", [one for one in PaymentState if "refund" in one])
@pytest.mark.parametrize("decision", [None, *Decision])
@pytest.mark.parametrize("problem", [None, "The refund key holds 0 USDC."])
def test_no_state_shows_its_code_or_what_is_for_the_operator(kind, state, decision, problem):
    refund = attrs.evolve(DUE, state=state, decision=decision, problem=problem)
    words = promise(kind).describe_refund(refund)
    assert "_" not in words
    assert "refund key" not in words
    assert words.endswith(".")


def test_an_approval_and_a_delay_are_said():
    assert "The operator approved it" in promise("review").describe_refund(APPROVED)
    late = attrs.evolve(APPROVED, problem="The key is empty.")
    assert "cannot send it now" in promise("review").describe_refund(late)
    waiting = attrs.evolve(DUE, problem="The key is empty.")
    assert "cannot send it now" in promise("automatic").describe_refund(waiting)
    # Without a key nothing is sent, whatever was approved.
    assert "cannot send one" in promise("none").describe_refund(APPROVED)


@pytest.mark.parametrize(
    ("kind", "state", "is_named"),
    [
        ("automatic", PaymentState.REFUND_DUE, False),
        ("review", PaymentState.REFUND_DUE, True),
        ("none", PaymentState.REFUND_DUE, True),
        ("automatic", PaymentState.REFUNDED, False),
        ("automatic", PaymentState.REFUND_FAILED, True),
    ],
)
def test_the_operator_is_named_where_a_buyer_may_have_to_ask(kind, state, is_named):
    words = promise(kind, "me@example.com").describe_refund(attrs.evolve(DUE, state=state))
    assert ("Contact: me@example.com" in words) is is_named
    assert "Contact" not in promise(kind).describe_refund(attrs.evolve(DUE, state=state))


def test_the_operator_is_named_before_the_sale_unless_refunds_are_automatic():
    named = [kind for kind in KINDS if "me@example.com" in promise(kind, "me@example.com").sentence]
    assert named == ["review", "none"]


@pytest.mark.parametrize("unknown", [None, "soon", ["automatic"], 5])
def test_an_unknown_policy_promises_nothing(unknown):
    assert "no refund is promised" in promise_in_words(unknown)


def test_reasons_are_sentences_without_codes():
    for details in ("provider_error", "content_policy", "invalid_input", "timed_out"):
        assert failure_in_words(details).endswith(".")
        assert "_" not in failure_in_words(details)
    assert "not ordered a second time" in failure_in_words("uncertain_submit")
    assert failure_in_words("news") == failure_in_words(None) == ""
