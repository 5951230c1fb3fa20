"""Word 97 files: text that was deleted or hidden is left out, whatever way the file says so."""

import contextlib
import random
import struct

import pytest
from documents_older_word import DELETED, HIDDEN, doc

from gateway_documents.child import libraries, parsing
from gateway_documents.errors import Unreadable

BOLD, COLOUR = b"\x35\x08\x01", b"\x70\x68\x01\x02\x03\x04"
TABLE = b"\x08\xd6\x04\x00\x01\x02\x03"
NOTE = "Hidden text was left out."


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(*runs, **options):
    return parsing.parse("doc", doc(*runs, **options))


@pytest.mark.parametrize("wide", [False, True])
def test_deleted_text_is_left_out(wide):
    runs = (("The price is ", b""), ("400", DELETED), ("500 euros.\r", b""), ("Next.\r", b""))
    found = parsed(*runs, wide=wide)
    assert (found.pages, found.notes) == (["The price is 500 euros.\n\nNext."], ())


@pytest.mark.parametrize("wide", [False, True])
def test_hidden_text_is_left_out_with_a_note(wide):
    found = parsed(("Seen. ", b""), ("Secret. ", HIDDEN), ("Seen, too.\r", b""), wide=wide)
    assert (found.pages, found.notes) == (["Seen. Seen, too."], (NOTE,))


@pytest.mark.parametrize("before", [b"", BOLD, COLOUR, TABLE, b"\x4d\xca\x02ab"])
def test_the_property_is_found_behind_others(before):
    assert parsed(("Kept. ", b""), ("Gone.", before + DELETED)).pages == ["Kept."]


@pytest.mark.parametrize(
    ("operand", "text"), [(0, "Kept. Words"), (1, "Kept."), (0x80, "Kept. Words"), (0x81, "Kept.")]
)
def test_the_property_is_a_switch(operand, text):
    assert parsed(("Kept. ", b""), ("Words", b"\x00\x08" + bytes([operand]))).pages == [text]


def test_the_last_of_two_properties_counts():
    assert parsed(("Kept", DELETED + b"\x00\x08\x00")).pages == ["Kept"]


@pytest.mark.parametrize("short", [0x41, 0x5C])
def test_a_whole_piece_may_be_deleted_or_hidden(short):
    with pytest.raises(Unreadable, match="no text"):
        parsed(("Gone.", b""), piece=short << 1 | 1 << 8)
    assert parsed(("Kept.", b""), piece=short << 1).pages == ["Kept."]


def test_a_piece_may_refer_to_a_group_of_properties():
    group = b"\x01" + struct.pack("<H", len(BOLD + DELETED)) + BOLD + DELETED
    with pytest.raises(Unreadable, match="no text"):
        parsed(("Gone.", b""), piece=1, groups=group)
    assert parsed(("Kept.", b""), piece=3, groups=group).pages == ["Kept."]


def test_a_deleted_mark_joins_paragraphs():
    runs = (("First half, ", b""), ("\r", DELETED), ("second half.\rNext.\r", b""))
    assert parsed(*runs).pages == ["First half, second half.\n\nNext."]


def test_deleted_text_leaves_the_marks_of_fields_in_pairs():
    field = "\x13 AUTHOR \x14", "Bob", "\x15"
    runs = ((f"By {field[0]}", b""), (field[1], DELETED), (f"Eve{field[2]}.\r", b""))
    assert parsed(*runs).pages == ["By Eve."]
    assert parsed(("Kept", b""), ("".join(field), DELETED), (".\r", b"")).pages == ["Kept."]


def test_any_damage_is_refused_or_read():
    data = doc(("Kept. ", b""), ("Gone.", DELETED), ("More.\r", b""))
    chance = random.Random(1)
    for _ in range(300):
        damaged = bytearray(data[: chance.randrange(600, len(data) + 1)])
        for _ in range(chance.randrange(1, 6)):
            damaged[chance.randrange(8, len(damaged))] = chance.randrange(256)
        with contextlib.suppress(Unreadable):
            assert parsing.parse("doc", bytes(damaged)).has_text
