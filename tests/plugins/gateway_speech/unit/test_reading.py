"""Texts are written as people read them aloud, and split into pieces with pauses."""

import pytest

from gateway_speech.child import pieces, reading


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        (
            "Visit https://www.example.com/docs/start?page=2#top.",
            "Visit W.W.W. dot example dot com slash docs slash start.",
        ),
        ("see example.org/a, now", "see example dot org slash A, now"),
        (
            "jane.doe+sales@mail.example.co.uk wrote",
            "jane dot doe plus sales at mail dot example dot co dot U K wrote",
        ),
        (
            "open README.md in /usr/local/bin",
            "open README dot M D in slash usr slash local slash bin",
        ),
        ("It ended.Next one", "It ended.Next one"),
        ("+1 (555) 123-4567", "plus 1, 5 5 5, 1 2 3, 4 5 6 7"),
        ("call 020 7946 0958.", "call 0 2 0, 7 9 4 6, 0 9 5 8."),
        ("ISBN 978-3-16-148410-0", "ISBN 9 7 8, 3, 1 6, 1 4 8 4 1 0, 0"),
        ("1234567890123", "1 2 3, 4 5 6, 7 8 9, 0 1 2, 3"),
        ("10 000 000 people", "10,000,000 people"),
        ("agent 007, gate 0800", "agent 0 0 7, gate 0 8 0 0"),
        ("3.14159265358979323846", "3.141 and so on"),
        ("Python 3.11.2 at 192.168.0.1", "Python 3 point 11 point 2 at 192 dot 168 dot 0 dot 1"),
        ("on 29.11.2026", "on 2026-11-29"),
        ("on 31.13.2026", "on 31 point 13 point 2026"),
        ("0x1f4aE9", "0 X 1 F, 4 A E 9"),
        ("the 100th covid19", "the 100th covid19"),
        ("e.g. this, i.e. that, 24/7", "for example this, that is that, twenty-four seven"),
        ("5 × 3 m² ½ π", "5 times 3 m squared 1/2 pi"),
        ("# Title\n- **bold** [link](https://a.example/b)", "Title. bold link"),
        ("| a | b |\n|---|---|\n| c | d |", "a, b.\n\nc, d."),
        ("one 😀 two\u200b\u202e three", "one two three"),
        ("======= a $1.5", "a $1.5"),
        (" " * 9_999 + "a\t b", "a b"),
    ],
)
def test_a_text_is_written_as_it_is_read(text, spoken):
    assert reading.spoken(text) == spoken


def test_paragraphs_stay_apart():
    assert reading.spoken("One\nline.\n\n\n***\n\nTwo.") == "One line.\n\nTwo."


def test_sentences_are_pieces_with_pauses():
    found = list(pieces.split("Dr. A. Smith came. “Why?” she asked. Yes!\n\nNext."))
    assert [(one.text, one.pause_s) for one in found] == [
        ("Dr. A. Smith came.", pieces.SENTENCE_S),
        ("“Why?” she asked.", pieces.SENTENCE_S),
        ("Yes!", pieces.PARAGRAPH_S),
        ("Next.", 0.0),
    ]


def test_a_long_sentence_is_broken_where_people_breathe():
    clause = "and the gulls followed them over the wall, "
    found = list(pieces.split(clause * 12))
    assert all(len(one.text) <= pieces.MAX_CHARS for one in found)
    assert {one.pause_s for one in found[:-1]} == {pieces.CLAUSE_S}
    assert all(one.text.endswith(",") for one in found)


def test_text_without_any_space_is_broken_too_and_nothing_is_lost():
    found = list(pieces.split("ab-" * 400))
    assert max(len(one.text) for one in found) == pieces.MAX_CHARS
    assert "".join(one.text for one in found) == "ab-" * 400
