"""That nothing was charged is said to the buyer whose payment was looked up, and to no other."""

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
    assert vars(told) == vars(refusal) | {"message": told.message}


def test_the_sentence_stands_before_the_advice():
    assert say_uncharged(BUSY).message == (
        "The chain is silent; nothing was charged. Try again later."
    )
    assert say_uncharged(say_uncharged(BUSY)).message == say_uncharged(BUSY).message


@pytest.mark.parametrize("refusal", [StoreUnavailable(), PaymentRequired("spent")], ids=repr)
def test_an_unknown_outcome_and_a_402_do_not_say_it(refusal):
    assert say_uncharged(refusal) is refusal
