"""Any bytes give Markdown within the limits or one of seven reasons, before payment and after.

`DOCUMENT_MUTANTS` is the number of mutants of each file; the check of every commit takes a few.
"""

import ast
import asyncio
import os
import random
import re
from pathlib import Path

import documents_files as files
import documents_hostile as hostile
import pytest
from documents_files import request

import gateway
import gateway_documents
from gateway_documents import errors
from gateway_documents.child.work import MAX_ANSWER_BYTES
from gateway_documents.kinds import KINDS
from gateway_documents.provider import DocumentParser

MUTANTS = int(os.environ.get("DOCUMENT_MUTANTS", "3"))
SEED = int(os.environ.get("DOCUMENT_SEED", "8453"))
SOURCES = Path(gateway_documents.__file__).parent
# Bytes that formats give a meaning.
SIGNS = (b"\0", b"\xff\xff\xff\xff", b"<", b">", b'"', b"&", b"PK\x03\x04", b"endobj", b"\n", b",")


@pytest.fixture(scope="module")
def parser():
    parser = DocumentParser(pictures=None)
    yield parser
    asyncio.run(parser.close())


def reasons_in(sentence):
    return [reason for reason in errors.REASONS if reason in sentence]


def mutant(data, chance):
    """Return a file with one to four changes: bytes turned, cut, repeated or exchanged."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        size = min(chance.choice((1, 1, 2, 16, 300)), len(changed) - at)
        kind = chance.randrange(5)
        if kind == 0 and size:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del changed[at : at + size]
        elif kind == 2:
            changed[at:at] = changed[at : at + size] * chance.choice((1, 2, 50))
        elif kind == 3:
            changed[at : at + size] = chance.choice(SIGNS)
        else:
            changed[at:] = changed[at:][: chance.randrange(len(changed) - at + 1)]
    return bytes(changed)


async def outcome(parser, name, data):
    """Return the refusal of a file, or None for Markdown; both must be as they are promised."""
    try:
        await parser.validate(request(name, data), gateway_documents.ENDPOINT)
        refused = None
    except gateway.InvalidInput as error:
        refused = str(error)
    try:
        text = (await parser.submit(request(name, data), None)).text
    except gateway.InvalidInput as error:
        sentence = str(error)
        assert len(reasons_in(sentence)) == 1, sentence
        assert "Traceback" not in sentence
        # The limits before payment are the lower ones.
        if "too slow" not in sentence and "too large" not in sentence:
            assert refused == sentence
        assert refused is not None, sentence
        return sentence
    assert refused is None or "too slow" in refused, (refused, text)
    assert text.strip()
    assert len(text.encode()) <= MAX_ANSWER_BYTES + 1_000
    return None


def some_files():
    files_by_name = files.ordinary_files()
    files_by_name.pop("report.HTM")
    return files_by_name


@pytest.mark.parametrize("name", some_files())
async def test_any_change_of_a_valid_file_is_read_or_refused_with_one_reason(parser, name):
    chance = random.Random(f"{SEED} {name}")
    data = some_files()[name]
    assert await outcome(parser, name, data) is None
    for number in range(MUTANTS):
        try:
            await outcome(parser, name, mutant(data, chance))
        except Exception as error:
            raise AssertionError(f"{name}, mutant {number} of seed {SEED}") from error


@pytest.mark.parametrize("extension", [".pdf", ".docx", ".html", ".csv", ".txt", ".rtf", ".xls"])
async def test_any_bytes_under_any_name_are_read_or_refused_with_one_reason(parser, extension):
    chance = random.Random(f"{SEED} {extension}")
    for _ in range(MUTANTS):
        noise = chance.randbytes(chance.choice((0, 1, 4, 100, 5_000)))
        header = chance.choice((b"", b"%PDF-1.7\n", b"PK\x03\x04", b"{\\rtf1", b"\xd0\xcf\x11\xe0"))
        await outcome(parser, f"a{extension}", header + noise)


# Each makes its file when its test runs, because every test process reads this list.
@pytest.mark.parametrize(
    ("name", "make", "reason"),
    [
        ("a.txt", lambda: b" \n", "empty"),
        ("a.docx", hostile.encrypted_office, "encrypted"),
        ("a.pdf", lambda: hostile.encrypted_pdf("x"), "encrypted"),
        ("a.docx", lambda: files.docx("x")[:-200], "damaged"),
        ("a.pdf", lambda: b"words", "unknown"),
        ("a.exe", lambda: b"MZ", "unknown"),
        ("a.pdf", lambda: files.docx("x"), "unknown"),
        ("a.txt", lambda: b"\x01\x02", "unknown"),
        ("a.html", lambda: b"<p></p>", "no text"),
        ("a.pdf", files.scanned_pdf, "no text"),
        ("a.csv", lambda: b"x," * 600 + b"\n" + b"," * 600 + b"x\n" + b"x\n" * 9_000, "too large"),
        ("a.docx", lambda: hostile.word_bomb(300_000_000), "too large"),
    ],
)
async def test_each_reason_is_found_before_payment(parser, name, make, reason):
    sentence = await outcome(parser, name, make())
    assert sentence is not None
    assert reasons_in(sentence) == [reason], sentence


def sentences():
    """Return each sentence of the source code that refuses a file, by its place."""
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            text = ""
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            elif isinstance(node, ast.JoinedStr):
                text = "".join(
                    part.value if isinstance(part, ast.Constant) else "#" for part in node.values
                )
            if re.match(r"The (file|picture|kind|character)\b.*[.]\Z", text):
                found[f"{path.relative_to(SOURCES)}:{node.lineno}"] = text
    return found


def test_every_refusal_names_exactly_one_reason():
    # The note about a guess ends a result; it refuses nothing.
    refusals = {at: text for at, text in sentences().items() if "a guess" not in text}
    assert len(refusals) > 15
    wrong = {at: text for at, text in refusals.items() if len(reasons_in(text)) != 1}
    assert wrong == {}


def test_every_kind_has_a_file_to_change():
    assert {f".{name.rpartition('.')[2]}" for name in some_files()} == {
        extension for extension in KINDS if extension not in (".doc", ".ppt", ".xls", ".htm")
    }
