"""A text that the voice cannot read is refused with one sentence, before payment."""

import pytest

from gateway_speech.child.speakable import find_problem


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no words to read aloud"),
        ("!!! … 😀", "no words to read aloud"),
        ("Say Привет", "another script, such as cyrillic capital letter pe."),
        ("\u202eשלום", "another script, such as hebrew letter shin."),
        ("日本", "another script, such as cjk unified ideograph-65e5."),
        ("the word λόγος", "another script, such as greek small letter lamda."),
        ("٣٤ eggs", "another script, such as arabic-indic digit three."),
        ("9" * 10_000, "a number of 10,000 digits; 40 in a row are the most"),
        ("1 " * 2_500, "contains 2,500 digits and symbols, and each is read as a word"),
        ("#@" * 1_500, "no words to read aloud"),
        ("a" + "#@" * 1_500, "contains 3,000 digits and symbols"),
        ("It is ₿ 5", "cannot read the sign bitcoin sign: write the currency as a word."),
        ("5 ₺", "cannot read the sign turkish lira sign"),
        ("<p></p><br>", "no words to read aloud"),
        ("a\u00ad" * 100, "a word of 100 letters"),
        ("a" * 100, "a word of 100 letters; 60 are the most"),
    ],
)
def test_it_is_refused_with_a_reason(text, sentence):
    assert sentence in find_problem(text)


@pytest.mark.parametrize(
    "text",
    [
        "Good morning.",
        "Łódź, café, Zürich and naïve",
        "the angle α is π/4",
        "“Quotes” — dashes… and 😀",
        "Ｆｕｌｌ ｗｉｄｔｈ １２",
        "1,250 people paid $48,500 on 2026-11-29",
        "9" * 40,
        "$5, £5, €5, ¥5, ₹5, ₩5 and 5¢",
    ],
)
def test_it_is_taken(text):
    assert find_problem(text) is None
