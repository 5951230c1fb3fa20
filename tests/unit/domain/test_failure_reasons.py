"""Every reason of a failure is told to buyers and watched by the operator's alerts."""

from pathlib import Path

import pytest

from gateway.domain.failure_reasons import FailureReason, failure_in_words

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("reason", FailureReason)
def test_each_reason_is_in_words_and_in_the_guide(reason):
    assert failure_in_words(str(reason)).endswith(".")
    assert f"`{reason}`" in (ROOT / "static" / "llms.txt").read_text()


@pytest.mark.parametrize("details", [None, "", "a_later_reason"])
def test_an_unknown_reason_has_no_words(details):
    assert failure_in_words(details) == ""


def test_the_alert_counts_the_same_reasons():
    others = "|".join(["completed", *(reason for reason in FailureReason if not reason.counts)])
    assert f'outcome!~"{others}"' in (ROOT / "deploy" / "alerts.yml").read_text()
