"""Attack files: each is refused with a sentence within seconds, and the next file is parsed."""

import asyncio
import resource
import time
from pathlib import Path

import attrs
import documents_files as files
import documents_hostile as hostile
import pytest
from documents_files import request

import gateway
import gateway_documents
from gateway_documents import sandboxes
from gateway_documents.provider import DocumentParser

OWNED = Path("/tmp/owned")  # what the parts of the file are called
PASSWD = Path("/etc/passwd").read_text().splitlines()[0]


@pytest.fixture(scope="module")
def survivor():
    parser = DocumentParser(pictures=None)
    yield parser
    asyncio.run(parser.close())


@pytest.fixture
async def parser(survivor):
    yield survivor
    text = (await survivor.submit(request("a.html", b"<h1>Still here</h1>"), None)).text
    assert text == "# Still here"


def was_written(path):
    return path.exists()


def largest_child():
    """Return the most memory that any child had so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


async def refusal(parser, name, data):
    """Return the sentence that ends the parsing of a file."""
    with pytest.raises(gateway.InvalidInput) as refused:
        await parser.submit(request(name, data), None)
    return str(refused.value)


async def test_files_that_want_all_time_and_memory_are_killed_while_others_are_served():
    texts = sandboxes.text_reader()
    # A third of the usual time makes the test short.
    texts.limits = attrs.evolve(texts.limits, cpu_s=5)
    parser = DocumentParser(texts=texts, pictures=None)
    started, before = time.monotonic(), largest_child()
    slow = asyncio.create_task(refusal(parser, "heavy.docx", hostile.heavy_docx()))
    big = await refusal(parser, "wide.xlsx", hostile.wide_xlsx())
    meanwhile = await parser.submit(request("a.csv", b"a,b\n1,2"), None)
    # A parser in Rust aborts at the memory limit. On a slow machine the time is over first.
    ends = (
        "The file is too large: it takes too much memory to parse.",
        "The file is too slow to parse: it takes too much time.",
        "The file is damaged, or takes too much memory to parse.",
        "The file is too large to parse.",
    )
    assert big in ends
    assert meanwhile.text.startswith("| a | b |")
    assert await slow in ends
    assert time.monotonic() - started < 2 * texts.limits.wall_s
    # Other tests of this process may have had larger children, such as browsers.
    assert largest_child() <= max(before, texts.limits.memory_bytes)
    await parser.close()


async def test_a_pdf_bomb_is_an_error(parser):
    assert "takes too much memory" in await refusal(parser, "bomb.pdf", hostile.pdf_bomb())


async def test_a_directory_that_lies_about_sizes_does_not_help_a_bomb(parser):
    assert "damaged" in await refusal(parser, "lie.docx", hostile.lying_bomb())


async def test_a_sparse_workbook_costs_what_it_holds(parser):
    text = (await parser.submit(request("a.xlsx", hostile.sparse_xlsx()), None)).text
    assert text == "## One\n\n| 1 |  |\n| --- | --- |\n|  | 2 |"


async def test_xml_entities_neither_multiply_nor_read_files(parser):
    for name, data in hostile.entity_files():
        if name.endswith(".epub"):
            # Its reader leaves entities out.
            text = (await parser.submit(request(name, data), None)).text
            assert text.startswith("# Harbour Tales")
            assert len(text) < 1_000
            assert PASSWD not in text
        else:
            assert "entities" in await refusal(parser, name, data)


@pytest.mark.full
async def test_a_page_nested_100_000_deep_is_read_or_refused(parser):
    assert (await parser.submit(request("a.html", hostile.deep_html()), None)).text == "deep"


async def test_an_encrypted_pdf_is_refused_unless_its_password_is_empty(parser):
    assert "encrypted" in await refusal(parser, "a.pdf", hostile.encrypted_pdf("secret"))
    with pytest.raises(gateway.InvalidInput, match="encrypted"):  # and nobody has paid for it
        await parser.validate(
            request("a.pdf", hostile.encrypted_pdf("secret")), gateway_documents.ENDPOINT
        )
    await parser.validate(request("a.pdf", hostile.encrypted_pdf("")), gateway_documents.ENDPOINT)
    text = (await parser.submit(request("a.pdf", hostile.encrypted_pdf("")), None)).text
    assert "Nobody but us" in text


async def test_a_pdf_of_pictures_is_refused_with_the_reason(parser):
    assert "only a picture of it" in await refusal(parser, "a.pdf", files.scanned_pdf())


async def test_member_names_that_leave_the_folder_write_nothing(parser):
    assert (
        await refusal(parser, "a.docx", hostile.traversing_docx()) == "The file contains no text."
    )
    assert not was_written(OWNED)


async def test_the_name_of_a_file_is_never_a_path(parser):
    result = await parser.submit(request("../../etc/passwd.pdf", files.sample_pdf()), None)
    assert "Quarterly Report" in result.text
    assert PASSWD not in result.text


async def test_truncated_and_broken_files_are_errors_or_what_is_left(parser):
    for name, data in files.ordinary_files().items():
        rest = data[: len(data) * 2 // 3]
        if name.endswith((".html", ".HTM", ".csv", ".txt", ".md", ".rtf")):
            assert (await parser.submit(request(name, rest), None)).text
        else:
            assert "damaged" in await refusal(parser, name, rest)


async def test_a_container_of_nonsense_is_an_error(parser):
    nonsense = files.archive({"[Content_Types].xml": "<x/>", "ppt/a.xml": hostile.noise()})
    assert "damaged" in await refusal(parser, "a.pptx", nonsense)


async def test_a_polyglot_is_what_its_name_says_or_refused(parser):
    both = files.sample_pdf() + files.docx("I am Word")
    assert "Quarterly Report" in (await parser.submit(request("a.pdf", both), None)).text
    assert "is a PDF" in await refusal(parser, "a.docx", both)


@pytest.mark.full
async def test_a_csv_of_seven_megabytes_is_parsed(parser):
    text = (await parser.submit(request("a.csv", hostile.big_csv()), None)).text
    assert text.count("\n") > 150_000


async def test_a_table_too_large_to_write_is_refused(parser):
    sentence = await refusal(
        parser, "a.csv", (b"," * 600 + b"x\n") + b"x," * 600 + b"\n" + b"x\n" * 9_000
    )
    assert "too large: a table of 9,001 rows and 600 columns" in sentence


@pytest.mark.full
async def test_more_than_16_mb_of_markdown_is_refused(parser):
    # Markdown escapes each pipe.
    piped = b"a\n" + (b"|" * 100_000 + b"\n") * 81
    sentence = await refusal(parser, "a.csv", piped)
    # On a slow machine the time limit comes first.
    assert (
        "more than 16 MB" in sentence
        or sentence == "The file is too slow to parse: it takes too much time."
    )
