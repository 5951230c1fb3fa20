"""The document parser's output for ordinary files, and its refusals before payment."""

import asyncio
import io

import attrs
import documents_files as files
import documents_hostile as hostile
import documents_pdf as pdf
import pytest
import xlsxwriter
from documents_files import request

import gateway
import gateway_documents
from gateway import Settings
from gateway_documents.checked import CheckedResults
from gateway_documents.kinds import PICTURES
from gateway_documents.provider import DocumentParser


@pytest.fixture(scope="module")
def parser():
    parser = DocumentParser(pictures=None)
    yield parser
    asyncio.run(parser.close())


async def refusal(parser, name, data):
    """Return the message that refuses a file before payment."""
    with pytest.raises(gateway.InvalidInput) as refused:
        await parser.validate(request(name, data), gateway_documents.ENDPOINT)
    return str(refused.value)


def test_it_is_always_on_sale():
    sold = []
    gateway_documents.register_endpoints(lambda *pair: sold.append(pair), Settings())
    [(endpoint, provider)] = sold
    assert endpoint.max_pages == 1000
    assert (endpoint.slug, endpoint.price_units) == ("document-parser", 10_000)
    assert (endpoint.capability, endpoint.provider) == ("document-parsing", "gateway")
    assert provider.name == "documents"


async def test_it_can_parse_every_kind_it_says_it_takes(parser):
    # No program here writes the older kinds; anydoc and calamine test them.
    older = {".doc", ".ppt", ".xls"}
    extensions = older | {f".{name.rpartition('.')[2].lower()}" for name in files.ordinary_files()}
    for endpoint in (gateway_documents.ENDPOINT, gateway_documents.READING_PICTURES):
        assert set(endpoint.file_extensions) == extensions | set(PICTURES)


def test_the_same_document_may_be_parsed_twice(parser):
    assert parser.traits.idempotent_submit
    assert isinstance(parser, gateway.Validating)
    assert isinstance(parser, gateway.Closing)


async def test_ordinary_files_become_markdown(parser):
    for name, data in files.ordinary_files().items():
        await parser.validate(request(name, data), gateway_documents.ENDPOINT)
        text = (await parser.submit(request(name, data), None)).text
        assert "3,960" in text, name
        if "csv" in name:
            assert text.startswith("| Region | Orders |")
        elif not name.endswith(("xlsx", "ods")):
            assert "# Quarterly Report" in text, name
            assert "online orders" in text.lower().replace("**", ""), name
        if name.rpartition(".")[2].lower() not in ("txt", "md"):
            lines = text.replace(" ", "").splitlines()
            assert any(line.startswith("|Alps|") for line in lines), text
            assert any(line.startswith("|---|---|") for line in lines), text


async def test_a_pdf_keeps_its_headings_tables_lists_and_both_pages(parser):
    text = (await parser.submit(request("a.pdf", files.sample_pdf()), None)).text
    assert "## Sales by region" in text
    assert "| Alps | 512 | 3,960 | $ 61,380 |" in text
    assert "| Harbour Blend, 250 g | 480 | $ 9.50 | $ 4,560.00 |" in text
    assert "- Goods remain ours until they are paid for in full." in text


async def test_a_workbook_shows_values_as_people_write_them_and_no_empty_columns(parser):
    text = (await parser.submit(request("a.xlsx", files.xlsx()), None)).text
    assert text == (
        "## Sales\n\n"
        "| Region | Orders | Bags sold | Revenue |  |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| North Sea coast | 1,204 | 9,870 | $ 148,050 |  |\n"
        "| Rhine valley | 986 | 7,415 | $ 111,225 |  |\n"
        "| Alps | 512 | 3,960 | $ 61,380 |  |\n"
        "| Online | 2,731 | 12,044 | $ 192,704 |  |\n"
        "|  |  |  |  | far \\| away |\n\n"
        "## Facts\n\n"
        "| Day | Bags | Share | Open |\n"
        "| --- | --- | --- | --- |\n"
        "| 2026-09-30 | 12 | 0.25 | TRUE |\n"
        "| 2026-10-01 08:30:00 |  | 0.5 | FALSE |"
    )


async def test_pictures_charts_and_formulas_need_no_file_that_a_child_cannot_open(parser):
    slides = (await parser.submit(request("a.pptx", files.rich_pptx()), None)).text
    assert "| July | 151 |" in slides
    text = (await parser.submit(request("a.docx", files.rich_docx()), None)).text
    assert "$\\frac{1}{2}$" in text
    assert "港のコーヒー" in text


@pytest.mark.parametrize(
    ("charset", "declared"),
    [("utf-8", ""), ("utf-16", ""), ("cp1252", ""), ("iso8859-15", "iso-8859-15"), ("cp850", "")],
)
async def test_text_is_read_in_its_charset(parser, charset, declared):
    meta = f'<meta charset="{declared}">' if declared else ""
    page = f"<html>{meta}<p>Café déjà vu</p></html>".encode(charset)
    text = (await parser.submit(request("a.html", page), None)).text
    assert text.partition("\n")[0] == "Café déjà vu"
    assert ("a guess" in text) == (not declared and not charset.startswith("utf"))


async def test_a_japanese_page_is_read_in_the_charset_it_names(parser):
    page = '<meta http-equiv="x" content="text/html; charset=Shift_JIS"><h1>珈琲</h1>'
    text = (await parser.submit(request("a.htm", page.encode("shift_jis")), None)).text
    assert text == "# 珈琲"


async def test_a_page_that_names_an_odd_charset_is_read_as_utf_8(parser):
    page = '<meta charset="rot13"><p>Café</p>'.encode()
    assert (await parser.submit(request("a.html", page), None)).text == "Café"


async def test_a_name_that_belies_the_file_is_refused(parser):
    named = files.ordinary_files()
    assert "but the file is a Word document" in await refusal(parser, "a.pdf", named["report.docx"])
    assert "but the file is a PDF" in await refusal(parser, "a.docx", named["report.pdf"])
    assert "but the file is a PDF" in await refusal(parser, "a.txt", named["report.pdf"])
    assert "but the file is an EPUB" in await refusal(parser, "a.xlsx", named["report.epub"])
    assert "a ZIP archive" in await refusal(parser, "a.docx", files.archive({"a": "b"}))
    assert "but the file is something else" in await refusal(parser, "a.pdf", b"just text")
    assert "must end in one of .pdf" in await refusal(parser, "a.exe", b"MZ")
    assert "must end in one of .pdf" in await refusal(parser, "pdf", named["report.pdf"])


async def test_an_empty_file_is_refused(parser):
    for name in ("a.pdf", "a.docx", "a.txt"):
        assert await refusal(parser, name, b"") == "The file is empty."
        assert await refusal(parser, name, b" \r\n\0") == "The file is empty."


async def test_a_request_without_a_file_is_refused(parser):
    with pytest.raises(gateway.InvalidInput, match="fileBase64"):
        await parser.validate(gateway.GenerationRequest(prompt="x"), gateway_documents.ENDPOINT)


async def test_nul_bytes_in_text_are_refused(parser):
    assert "control character" in await refusal(parser, "a.txt", b"a\0b")
    assert "control character" in await refusal(parser, "a.csv", b"a,b\n\x01,c")


async def test_locked_and_old_office_files_are_refused_with_advice(parser):
    sentence = await refusal(parser, "a.docx", hostile.encrypted_office())
    assert sentence == "The file is encrypted: save it without a password."


async def test_a_locked_zip_container_is_refused(parser):
    locked = bytearray(files.docx("x"))
    locked[locked.rfind(b"PK\x01\x02") + 8] |= 1
    assert "without a password" in await refusal(parser, "a.docx", bytes(locked))


async def test_a_bomb_is_refused_before_payment(parser):
    assert "unpacks to 100 MB" in await refusal(parser, "a.docx", hostile.word_bomb(100_000_000))
    crowd = files.archive({f"[Content_Types].xml/{at}": "" for at in range(20_000)})
    assert "too many parts" in await refusal(parser, "a.docx", crowd)


async def test_a_binary_workbook_is_refused_with_advice(parser):
    binary = files.archive({"[Content_Types].xml": "", "xl/workbook.bin": ""})
    assert "save it as .xlsx" in await refusal(parser, "a.xlsx", binary)


async def test_truncated_containers_are_refused_before_payment(parser):
    for name, data in files.ordinary_files().items():
        if name.endswith(("x", "epub")):
            assert "damaged or incomplete" in await refusal(
                parser, name, data[: len(data) * 2 // 3]
            )


async def test_noise_is_refused_whatever_its_name(parser):
    for extension in gateway_documents.ENDPOINT.file_extensions:
        assert await refusal(parser, f"noise{extension}", hostile.noise())


async def test_a_machine_without_a_process_to_spare_refuses_nobody(monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    await DocumentParser(pictures=None).validate(
        request("a.pdf", files.sample_pdf()), gateway_documents.ENDPOINT
    )


async def test_a_csv_that_begins_like_a_picture_is_a_csv(parser):
    data = b"BMW,RIFF\nII*,MM\n"
    assert (await parser.submit(request("a.csv", data), None)).text.startswith("| BMW | RIFF |")


async def test_a_broken_or_hostile_pdf_is_refused_before_payment(parser):
    assert "damaged" in await refusal(parser, "a.pdf", files.sample_pdf()[:2000])
    assert "memory" in await refusal(parser, "a.pdf", hostile.pdf_bomb())


@pytest.mark.parametrize(
    "broken",
    [
        lambda data: b"HTTP/1.1 200 OK\r\n\r\n" + data,
        lambda data: data + b"\0" * 5000,
        lambda data: data.replace(b"startxref\n", b"startxref\n9"),
        lambda data: data[: data.rindex(b"startxref")],
        lambda data: data.replace(b"%PDF-1.4", b"%PDF-9.9"),
    ],
)
async def test_a_pdf_that_readers_repair_is_read(parser, broken):
    whole = files.sample_pdf()
    data = broken(whole)
    assert data != whole
    await parser.validate(request("a.pdf", data), gateway_documents.ENDPOINT)
    assert "3,960" in (await parser.submit(request("a.pdf", data), None)).text


async def test_a_document_of_too_many_pages_is_refused_before_payment(parser):
    page = pdf.Page()
    page.text(80, 700, "Every page has a line.")
    pages = [page] * 1001
    assert "too large: it has 1,001 pages" in await refusal(parser, "a.pdf", pdf.write(pages))
    short = attrs.evolve(gateway_documents.ENDPOINT, max_pages=1)
    with pytest.raises(gateway.InvalidInput, match="too large: it has 2 pages"):
        await parser.validate(request("a.pdf", pdf.write(pages[:2])), short)


async def test_a_document_of_too_many_pages_is_refused_after_payment_too(parser):
    with xlsxwriter.Workbook(book := io.BytesIO()) as sheets:
        for number in range(1001):
            sheets.add_worksheet().write(0, 0, number)
    assert "more than 1,000 pages" in await refusal(parser, "a.xlsx", book.getvalue())
    with pytest.raises(gateway.InvalidInput, match="too large: it has more than 1,000 pages"):
        await parser.submit(request("a.xlsx", book.getvalue()), None)


async def test_a_checked_file_is_not_parsed_again_after_payment(monkeypatch):
    parser = DocumentParser(pictures=None)
    small, large = request("a.pdf", files.sample_pdf()), request("a.txt", b"word " * 60_000)
    for order in (small, large):
        await parser.validate(order, gateway_documents.ENDPOINT)
    await parser.close()
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert "3,960" in (await parser.submit(small, None)).text
    for order in (small, large):
        with pytest.raises(gateway.Transient):
            await parser.submit(order, None)


def test_results_of_checks_are_few_and_kept_for_minutes():
    now = 0.0
    results = CheckedResults(now=lambda: now)
    for number in range(40):
        results.add(f"{number}", [b"text"])
    assert [results.take(name) for name in ("7", "8", "8")] == [None, [b"text"], None]
    now = 301.0
    assert results.take("39") is None
    results.add("new", [b"text"])
    assert results.take("new") == [b"text"]
