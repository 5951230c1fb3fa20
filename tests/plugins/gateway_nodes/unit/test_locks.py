"""The locks over all nodes that writes take; the races are in tests/gateway/postgres."""

from gateway.store.sql import lock_names, locked
from gateway_nodes import provider_states
from gateway_nodes.postgres.locks import lock_number, locks_of


def test_nodes_that_meet_the_same_refusal_write_one_after_the_other():
    assert lock_names(provider_states.exchange, ([], "a")) == ["providers"]


def test_locks_are_numbers_in_the_order_of_their_names():
    write = locked(lambda first, second: [first, second])(lambda *_: None)
    assert locks_of(write, ("a", "b")) == [lock_number("a"), lock_number("b")]
    assert lock_number("a") != lock_number("b")
