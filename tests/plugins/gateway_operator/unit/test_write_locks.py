"""Locks of the operator's writes if several nodes write."""

import pytest

from gateway.store import payments
from gateway.store.sql import lock_names
from gateway_operator.sql import (
    actions,
    alarms,
    logins,
    overrides,
    passkeys,
    refunds,
    sessions,
    tokens,
)


@pytest.mark.parametrize(
    ("write", "names"),
    [
        (refunds.approve, ["refunds"]),
        (refunds.reject, ["refunds"]),
        (refunds.retry, ["refunds"]),
        (refunds.take_back, ["refunds"]),
        (logins.count_refused, ["refused-logins"]),
        (tokens.insert, ["tokens"]),
        (passkeys.insert, ["passkeys"]),
        (alarms.apply_round, ["alarms"]),
        (overrides.insert, ["overrides"]),
        # Their primary keys decide.
        (sessions.insert, []),
        (actions.insert, []),
    ],
)
def test_an_action_takes_the_locks_of_its_write(write, names):
    assert lock_names(write, ("an argument",)) == names
    assert lock_names(actions.act, (write, ("an argument",), "an action")) == names


def test_an_action_hands_its_writes_arguments_to_the_lock():
    arguments = (payments.begin_settling, (7, None, 1.0), "an action")
    assert lock_names(actions.act, arguments) == []
