"""Files that have passed their checks are cached for their sender, for a while."""

import attrs
import pytest

from gateway.domain import Attachment, GenerationRequest
from gateway.running import intake
from gateway.running.intake import CheckedFiles

SENT = GenerationRequest(prompt="Read it.", attachment=Attachment(name="a.pdf", data=b"%PDF-"))
PASSED = attrs.evolve(SENT, pages=3)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def files(clock):
    files = CheckedFiles(clock)
    files.add("a", "paper", PASSED)
    return files


def test_the_same_request_of_the_same_address_is_known_with_its_pages(files):
    assert files.find("a", "paper", SENT) == PASSED


@pytest.mark.parametrize(
    "other",
    [
        ("b", "paper", SENT),
        ("a", "book", SENT),
        ("a", "paper", attrs.evolve(SENT, prompt="Read all.")),
        ("a", "paper", attrs.evolve(SENT, attachment=Attachment(name="a.pdf", data=b"%PDF-2"))),
        ("a", "paper", attrs.evolve(SENT, attachment=Attachment(name="b.pdf", data=b"%PDF-"))),
    ],
)
def test_any_other_request_is_not(files, other):
    assert files.find(*other) is None


def test_it_is_forgotten_when_its_price_is(files, clock):
    clock.now += 301
    assert files.find("a", "paper", SENT) is None


def test_the_oldest_is_forgotten_where_too_many_come(files, monkeypatch):
    monkeypatch.setattr(intake, "_MAX_CHECKED", 2)
    for address in ("b", "c"):
        files.add(address, "paper", PASSED)
    assert [files.find(one, "paper", SENT) for one in ("a", "b", "c")] == [None, PASSED, PASSED]
