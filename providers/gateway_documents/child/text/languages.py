"""Languages in Latin script: which of several readings of a text one of them explains."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

# By region: each language's letters outside ASCII, and common words of it that are not English.
_LINES = (
    (
        "àâæçèéêëîïôùûüœÿ: les des une est dans pour qui que pas sur avec vous nous",
        "äöüßé: und der das ist nicht mit von ein eine auf wir sie",
        "áéíñóúü: los del las una por para como pero sus muy este",
        "àáâãçéêíóôõúü: uma com dos das para mais como pelo muito ele",
        "àèéìîòù: che della sono con non gli alla una dei nel molto",
        "àçèéíïòóúü: els amb del una per les dels",
        "åäöé: och att det som inte med jag till ett av",
        "æøåéü: og det ikke til med som af er vi jeg av",
        "ëéïóöüèá: het een niet zijn voor met dat wij naar",
        "áæðéíóöúýþ: og sem ekki var til vi er",
        "çë: dhe nga per nuk me",
    ),
    (
        "áčďéěíňóřšťúůýž: je na se jsem pro ale jak nebo byl jsou",
        "áäčďéíĺľňóôŕšťúýž: je na sa som pre ale ako alebo bol",
        "ąćęłńóśźż: jest nie na jak ale od po przez czy tak",
        "áéíóöőúüű: az hogy nem van egy volt meg csak mint ez",
        "ăâîșțşţ: este care din cu pentru sau nu la mai ce",
        "ćčđšž: je na se da su za kao kot ali od pri bilo",
    ),
    ("çğıİöşüâîû: bir ve bu ile gibi kadar icin cok ama",),
    (
        "āčēģīķļņšūžõŗ: un ir par kas vai ar tas",
        "ąčęėįšųūž: ir yra kad tai buvo iki mes bet",
        "äõöüšž: ja ei see oli aga kui ning",
        "äöå: ja ei se oli mutta kun niin ovat",
    ),
)
_TOKEN = re.compile(r"[^\W\d_]+")
_TAG = re.compile(r"<[^<>]*>")
# A sign within a word shows the wrong charset, as do a capital after a small letter and the same
# letter four times; apostrophes, dashes and quotes do not.
_IMPLAUSIBLE = re.compile(
    r"[^\W\d_](?:[^\w\s\x21-\x7e'\u2019·\-\u2013—«»…\xad\xa0]|[²³¹¼½¾ªº])+[^\W\d_]|[^\W\d_][\u201a\u201e]"
    r"|(?<!\w)[²³¹ªº©®¤¦¬¶±]+[^\W\d_]|([\x80-\xff\u0100-\u017f])\1\1\1"
)
# Words of the sample that are compared with those of the languages.
_MAX_WORDS = 20_000
_FEW_LETTERS = 6
# The share of the letters that are of the text's language.
_MOST = 0.8
_UNKNOWN = -1


# Runs of other scripts, and those that belong to a Latin word: "Grپلe" for "Grüße", "g緳" for
# "går", and a single katakana of half width for "£".
_OTHER = re.compile(r"[\u0370-\uffef]+")
_OTHER_WORD = re.compile(r"[\u0370-\u0e7f]{2}|[\u2e80-\uff60]|[\uff61-\uff9f]{2}")
_PART_OF_WORD = re.compile(
    r"[A-Za-z][\u0370-\u0e7f]|[\u0370-\u0e7f][A-Za-z]|[a-z][\u2e80-\uffef]{1,2}(?![\u2e80-\uffef])"
    r"|(?<![\u2e80-\uffef])[\uff61-\uff9f](?![\u2e80-\uffef])|([\u0370-\uffef])\1\1\1"
)


@attrs.frozen
class _Language:
    letters: frozenset[str]
    words: frozenset[str]

    def count(self, words: Mapping[str, int]) -> int:
        """Return how many of these words are of the language."""
        return sum(words[word] for word in self.words if word in words)


def _language(line: str) -> _Language:
    letters, _, words = line.partition(":")
    return _Language(frozenset(letters + letters.upper()), frozenset(words.split()))


_REGIONS = tuple(tuple(map(_language, region)) for region in _LINES)


def common_words(ascii_text: str) -> Mapping[str, int]:
    """Return how often a text has each word that is common in one of the languages."""
    known = {word for region in _REGIONS for language in region for word in language.words}
    found = _TOKEN.findall(_TAG.sub(" ", ascii_text).lower())[:_MAX_WORDS]
    return Counter(word for word in found if word in known)


def by_likelihood(readings: Iterable[str], words: Mapping[str, int]) -> list[str]:
    """Return those of the readings that one language, or else one region, explains.

    It has all letters of the reading. The reading whose language has most of the common words is
    the first.
    """
    letters = {reading: _letters(reading) for reading in readings if is_plausible(reading)}
    for rank in (_rank_in_language, _rank_in_region):
        ranks = {reading: rank(found, words) for reading, found in letters.items()}
        known = [reading for reading in ranks if ranks[reading] > _UNKNOWN]
        if known:
            return sorted(known, key=lambda reading: -ranks[reading])
    return []


def _rank_in_language(letters: Counter[str], words: Mapping[str, int]) -> float:
    fitting = [one for region in _REGIONS for one in region if letters.keys() <= one.letters]
    return max((one.count(words) for one in fitting), default=_UNKNOWN)


def _rank_in_region(letters: Counter[str], words: Mapping[str, int]) -> float:
    """Return the rank of a text with a few foreign names; its share of own letters counts, too."""
    ranks = [0.0] if any(letters.keys() <= _letters_of(region) for region in _REGIONS) else []
    for language in itertools.chain.from_iterable(_REGIONS):
        share = sum(letters[char] for char in language.letters) / (letters.total() or 1)
        if share >= _MOST and (times := language.count(words)):
            ranks.append(times + share)
    return max(ranks, default=_UNKNOWN)


def _letters_of(region: Iterable[_Language]) -> frozenset[str]:
    return frozenset().union(*(language.letters for language in region))


def is_plausible(text: str) -> bool:
    """Whether words in Latin script have letters in them only, and capitals at their start."""
    has_control = any("\x7f" < char < "\xa0" for char in text)
    is_odd = has_control or _has_capital_inside(text) or _IMPLAUSIBLE.search(text)
    return not is_odd and has_ascii_letters(text)


def is_other_script(text: str) -> bool:
    """Whether a text in another script than Latin is none in a wrong charset."""
    parts = sum(1 for _ in _PART_OF_WORD.finditer(text))
    if not _OTHER_WORD.search(text):
        return False
    return 2 * parts < len(_OTHER.findall(text)) and not _has_capital_inside(text)


def _has_capital_inside(text: str) -> bool:
    """Whether a capital letter outside ASCII follows a small one."""
    return any(
        above.islower() and char > "\x7f" and char.isupper()
        for above, char in itertools.pairwise(text)
    )


def has_ascii_letters(text: str) -> bool:
    """Whether many letters outside tags are ASCII, as of every language in Latin script."""
    letters = "".join(_TOKEN.findall(_TAG.sub(" ", text)))
    return len(letters) < _FEW_LETTERS or 4 * sum(map(str.isascii, letters)) >= len(letters)


def _letters(text: str) -> Counter[str]:
    return Counter(char for char in text if char > "\x7f" and char.isalpha() and char not in "ªº")
