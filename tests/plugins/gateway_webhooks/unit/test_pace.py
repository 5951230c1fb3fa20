"""Limit of events per minute for one payer and host."""

from gateway_webhooks.deliveries import Pace


def test_ten_in_a_minute_and_the_eleventh_when_the_first_is_a_minute_old():
    pace = Pace()
    assert [pace.take("p", "h", 100.0 + n) for n in range(10)] == [0.0] * 10
    assert pace.take("p", "h", 110.0) == 160.0
    assert pace.take("p", "h", 159.9) == 160.0
    assert pace.take("p", "h", 160.0) == 0.0
    assert pace.take("p", "h", 160.5) == 161.0


def test_another_payer_and_another_host_have_their_own():
    pace = Pace()
    for _ in range(10):
        pace.take("p", "h", 1.0)
    assert pace.take("p", "h", 1.0) > 0
    assert pace.take("q", "h", 1.0) == pace.take("p", "i", 1.0) == 0.0


def test_a_clock_that_was_put_back_holds_nothing_up():
    pace = Pace()
    for _ in range(10):
        pace.take("p", "h", 100_000.0)
    assert pace.take("p", "h", 1.0) == 0.0


def test_pairs_are_forgotten_after_the_minute():
    pace = Pace()
    for number in range(1_000):
        pace.take(str(number), "h", 1.0)
    pace.take("last", "h", 61.0)
    assert list(pace._sent) == [("last", "h")]
