"""The locks of a write with several nodes; the races are in tests/gateway/postgres."""

from types import SimpleNamespace

import pytest

from gateway.store import meta, method_payments, nonces, payments, refunds
from gateway.store.sql import lock_names


def task_with(attachment):
    return SimpleNamespace(request=SimpleNamespace(attachment=attachment))


PAYER = SimpleNamespace(sender="0xa")
SIGNED = SimpleNamespace(signer="0xb")


@pytest.mark.parametrize(
    ("write", "arguments", "names"),
    [
        (payments.reserve, (task_with(None), PAYER, "key"), ["payer:0xa"]),
        (payments.reserve, (task_with(b"%PDF"), PAYER, "key"), ["files", "payer:0xa"]),
        (method_payments.reserve, (task_with(None), "mpp"), []),
        (method_payments.reserve, (task_with(b"%PDF"), "mpp"), ["files"]),
        (payments.begin_settling, (7, SIGNED, 1.0), ["signer:0xb"]),
        (payments.begin_settling, (7, None, 1.0), []),
        (nonces.begin_batch, (SIGNED, 1.0), ["signer:0xb"]),
        (refunds.begin, (7, SIGNED), ["refunds"]),
        (refunds.decide, ("task",), ["refunds"]),
        (meta.count_login_attempt, ("1.2.3.4",), ["logins"]),
        # Its primary keys decide.
        (payments.settle, (7, None, 1.0), []),
    ],
)
def test_a_write_that_decides_by_a_sum_takes_its_lock(write, arguments, names):
    assert lock_names(write, arguments) == names
