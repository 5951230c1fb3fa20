"""Finds texts that the voice cannot read aloud, before payment. A long text takes milliseconds."""

import re
import unicodedata

from gateway_speech.child import blocks, symbols

# In a row. Longer runs and words are data, which no listener can follow.
MAX_DIGITS_IN_A_ROW = 40
MAX_WORD_LETTERS = 60
# In all. Each is read as a word, so these bound the length of the sound.
MAX_MARKS = 2_000

# Plain punctuation is not read aloud.
_MARK = re.compile(r"[^\W_a-zA-Z]|[#%&*+/<=>@\\^_|~$€£]")
_DIGITS = re.compile(rf"\d{{{MAX_DIGITS_IN_A_ROW + 1},}}")
_WORD = re.compile(rf"[^\W\d_]{{{MAX_WORD_LETTERS + 1},}}")
_FOREIGN_WORD = re.compile(r"[^\W\d_]+")
_OURS = ("LATIN ", "MODIFIER LETTER ", "FEMININE ORDINAL", "MASCULINE ORDINAL")


def find_problem(text: str) -> str | None:
    """Return a sentence for the buyer about a text that cannot be read; None if it can be."""
    plain = symbols.without_marks(blocks.without_tags(text))
    if not any(char.isalnum() for char in plain):
        return "The text contains no words to read aloud."
    if foreign := _find_foreign(plain):
        return (
            "The voice reads English only; the text contains letters of another script, "
            f"such as {foreign}."
        )
    if unread := _find_currency(plain):
        return f"The voice cannot read the sign {unread}: write the currency as a word."
    return _find_too_long(plain)


def _find_too_long(plain: str) -> str | None:
    if found := _DIGITS.search(plain):
        return (
            f"The text contains a number of {len(found[0]):,} digits; "
            f"{MAX_DIGITS_IN_A_ROW} in a row are the most that are read aloud."
        )
    if found := _WORD.search(plain):
        return (
            f"The text contains a word of {len(found[0]):,} letters; "
            f"{MAX_WORD_LETTERS} are the most that are read aloud."
        )
    marks = sum(1 for _ in _MARK.finditer(plain))
    if marks > MAX_MARKS:
        return (
            f"The text contains {marks:,} digits and symbols, and each is read as a word; "
            f"{MAX_MARKS:,} are allowed."
        )
    return None


def _find_currency(text: str) -> str | None:
    """Return the name of a currency's sign that the voice would leave out."""
    if text.isascii():
        return None
    signs = (char for char in text if unicodedata.category(char) == "Sc")
    unread = (char for char in signs if char not in symbols.CURRENCIES)
    return next((unicodedata.name(char, "of a currency").lower() for char in unread), None)


def _find_foreign(text: str) -> str | None:
    """Return the name of a letter or digit of another script; a single Greek letter is a symbol."""
    if text.isascii():
        return None
    for found in _FOREIGN_WORD.finditer(text):
        word = found[0]
        names = [unicodedata.name(char, "an unnamed letter") for char in word]
        if len(word) == 1 and names[0].startswith("GREEK "):
            continue
        for name in names:
            if not name.startswith(_OURS):
                return name.lower()
    digits = (char for char in text if char.isdecimal() and not char.isascii())
    return next((unicodedata.name(char, "a digit").lower() for char in digits), None)
