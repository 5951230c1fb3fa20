"""A refusal contains "nothing was charged" only if its payment was looked up."""

import pytest

from gateway.errors import ExecutionError, PaymentRequired, StoreUnavailable, TooMuchUnpaid
from gateway.payments.accept import say_uncharged

BUSY = ExecutionError("The chain is silent. Try again later.", details="a time-out")


@pytest.mark.parametrize("refusal", [BUSY, TooMuchUnpaid(7)], ids=repr)
def test_the_error_that_other_requests_share_stays_as_it_is(refusal):
    before = refusal.message
    told = say_uncharged(refusal)
    assert refusal.message == before
    assert "nothing was charged" in told.message
    assert (type(told), told.status, told.code) == (type(refusal), refusal.status, refusal.code)
    assert vars(told) == vars(refusal) | {"message": told.message, "is_uncharged": True}


def test_the_sentence_stands_before_the_advice():
    assert say_uncharged(BUSY).message == (
        "The chain is silent; nothing was charged. Try again later."
    )
    assert say_uncharged(say_uncharged(BUSY)).message == say_uncharged(BUSY).message


def test_an_unknown_outcome_does_not_say_it():
    assert say_uncharged(StoreUnavailable()).is_uncharged is False


def test_a_402_says_it_by_a_member_of_its_body():
    refusal = PaymentRequired("spent")
    told = say_uncharged(refusal)
    assert (told.message, told.reason, told.is_uncharged) == ("spent", "spent", True)
    assert not refusal.is_uncharged
