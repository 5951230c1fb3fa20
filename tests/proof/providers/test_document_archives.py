"""ZIP containers that are damaged, or compressed in an odd way: refused, whatever is in them."""

import io
import random
import zipfile

import pytest

from gateway_documents.archives import kind_of
from gateway_documents.errors import Unreadable

METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
# A kind that only the main part's media type tells, and one that only `mimetype` tells.
CONTENTS = {
    "docx": {"[Content_Types].xml": f"<Types>{WORD * 5}</Types>", "other/main.xml": "<a/>"},
    "odt": {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<a/>" * 90},
}


def archive(contents, method):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as packed:
        for name, text in contents.items():
            packed.writestr(name, text)
    return whole.getvalue()


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("method", METHODS)
def test_only_the_methods_of_documents_are_unpacked_outside_of_the_sandbox(kind, method):
    data = archive(CONTENTS[kind], method)
    if method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        assert kind_of(data) == kind
        return
    with pytest.raises(Unreadable, match="compressed as no document is"):
        kind_of(data)


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("method", METHODS)
def test_damaged_data_is_refused_and_never_an_error_of_ours(kind, method):
    chance, whole = random.Random(45), archive(CONTENTS[kind], method)
    refused = 0
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.choice([0, 255, chance.randrange(256)])
        if chance.random() < 0.2:
            del data[chance.randrange(30, 60) : chance.randrange(60, 120)]
        try:
            kind_of(bytes(data))
        except Unreadable:
            refused += 1
    assert refused


def test_a_head_that_the_directory_puts_behind_the_end_is_damage():
    data = bytearray(archive(CONTENTS["odt"], zipfile.ZIP_STORED))
    entry = data.index(b"PK\1\2")
    data[entry + 42 : entry + 46] = (len(data) - 10).to_bytes(4, "little")
    with pytest.raises(Unreadable, match="damaged"):
        kind_of(bytes(data))
