"""`output_format: json`: a document's pages with the cells of their tables, beside the Markdown."""

import io
import json
import zipfile

import attrs
import documents_files as files
import documents_hostile as hostile
import pytest
from document_sales import buy_parsing, document
from documents_files import request
from documents_pdf import Page, write

import gateway_documents
from gateway.web.bodies import GenerationBody, request_of
from gateway_documents import child, sandboxes
from gateway_documents.child import page_json, tables, work
from gateway_documents.provider import DocumentParser
from tests.conftest import running

TABLE = [["Region", "Orders"], ["Alps", "512"], ["Rhine | Main", "986"], ["", "1\n2"]]


@pytest.fixture
async def parser():
    parser = DocumentParser(pictures=None)
    yield parser
    await parser.close()


async def parsed(parser, name, data, output_format="json"):
    asked = attrs.evolve(request(name, data), output_format=output_format)
    return await parser.submit(asked, None)


async def described(parser, name, data):
    [output] = (await parsed(parser, name, data)).outputs
    assert output.media_type == "application/json"
    return json.loads(output.data)


async def test_every_kind_of_file_has_pages_with_the_cells_of_its_tables(parser):
    for name, data in files.ordinary_files().items():
        found = await described(parser, name, data)
        assert [page["number"] for page in found["pages"]] == [*range(1, len(found["pages"]) + 1)]
        if name.rpartition(".")[2] in ("txt", "md"):
            continue
        cells = [
            cell
            for page in found["pages"]
            for table in page["tables"]
            for row in table
            for cell in row
        ]
        assert "3,960" in cells, name


async def test_the_markdown_is_the_same_in_both_formats(parser):
    for name, data in files.ordinary_files().items():
        plain = await parsed(parser, name, data, "markdown")
        assert plain.outputs == ()
        assert (await parsed(parser, name, data)).text == plain.text


async def test_pages_keep_their_numbers_and_notes_are_apart(parser):
    pages = [Page(), Page(), Page()]
    for number in (0, 2):
        pages[number].text(72, 700, f"Words of page {number + 1} that are read.")
    found = await described(parser, "report.pdf", write(pages))
    assert ["Words" in page["markdown"] for page in found["pages"]] == [True, False, True]
    found = await described(parser, "report.txt", "Škoda Řip".encode("cp1250"))
    assert len(found["notes"]) == 1
    assert "character set" in found["notes"][0]
    assert "character set" not in found["pages"][0]["markdown"]


async def test_slides_are_pages_and_keep_their_numbers(parser):
    import pptx as library

    deck = library.Presentation()
    for title in ("Prices", "A hidden slide", "Contact"):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text_frame.text = f"Words about {title}."
    deck.slides[1].element.set("show", "0")
    deck.slides[2].notes_slide.notes_text_frame.text = "Say goodbye."
    deck.save(file := io.BytesIO())
    found = await described(parser, "a.pptx", file.getvalue())
    assert [page["markdown"] for page in found["pages"]] == [
        "## Prices\n\n- Words about Prices.",
        "",
        "## Contact\n\n- Words about Contact.\n\n> Say goodbye.",
    ]
    assert found["notes"] == ["Hidden slides, left out: 1."]


async def test_a_document_of_as_many_pages_as_are_on_sale_is_read(parser):
    pages = [Page() for _ in range(gateway_documents.ENDPOINT.max_pages)]
    for number, page in enumerate(pages):
        page.text(72, 700, f"Words of page {number + 1} that are read.")
    asked = attrs.evolve(document(data=write(pages)), output_format="json")
    await parser.validate(asked, gateway_documents.ENDPOINT)
    result = await parser.submit(asked, None)
    assert "Words of page 1000 " in result.text
    assert len(json.loads(result.outputs[0].data)["pages"]) == len(pages)


async def is_sold_as_json(parser, name, data):
    """Return the JSON of a file that is accepted before payment."""
    await parser.validate(request(name, data), gateway_documents.ENDPOINT)
    return await described(parser, name, data)


@pytest.mark.full
async def test_control_characters_do_not_reach_the_json(parser):
    row = b",".join([b"\x1b" * 60, b"\x0b" * 60]) + b"\n"
    found = await is_sold_as_json(
        parser, "a.csv", b"a,b\n" + row * 61_000 + b"\x1b[1mc\x1b[0m,d\x7f"
    )
    [[head, *rows, last]] = found["pages"][0]["tables"]
    assert rows == [["", ""]] * 61_000
    assert (head, last) == (["a", "b"], ["[1mc[0m", "d"])


@pytest.mark.full
async def test_the_most_quotes_in_a_table_are_sold_as_json(parser):
    rows, cell = 5_000, '"' * 3_190
    sheet = f'<row><c t="inlineStr"><is><t>{cell}</t></is></c></row>' * rows
    book = io.BytesIO(hostile.workbook(sheet))
    with zipfile.ZipFile(book, "a") as archive:
        # So that it is no bomb by its ratio.
        archive.writestr("xl/media/noise", hostile.noise(400_000))
    found = await is_sold_as_json(parser, "a.xlsx", book.getvalue())
    [page] = found["pages"]
    assert page["tables"] == [[[cell]] * rows]
    assert page["markdown"].count(cell) == rows


def test_the_sandbox_returns_the_largest_json():
    cells = "|a|\n|-|\n" + "|" * (tables.MAX_FOUND_CELLS - 2)
    pages = ["x"] * (child.MAX_PAGES - 1) + [cells]
    quotes = '"' * (work.MAX_ANSWER_BYTES - sum(map(len, pages)))
    pages[-1] += quotes
    [described] = work.work("describe", "[]", json.dumps(pages).encode())
    assert described.count(b'\\"') == 2 * len(quotes)
    assert len(described) < sandboxes.text_reader().limits.answer_bytes


def test_cells_are_those_that_were_written():
    rows = [[tables.cell_text(cell) for cell in row] for row in TABLE]
    text = f"Before\n\n{tables.to_markdown(rows)}\n\nbetween | pipes\n\n{tables.to_markdown(rows)}"
    assert tables.find(text) == ([TABLE, TABLE], True)


def test_only_tables_are_tables():
    code = "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```"
    for text in ("", "| a | b |", "|---|---|", "a | b\n---|---\n1 | 2", code, "| a |\n\n|---|"):
        assert tables.find(text) == ([], True)
    assert tables.find("| a |\n|:-:|") == ([[["a"]]], True)


def test_code_in_a_cell_keeps_its_backslashes():
    cells = tables.cells(r"| `a \| b \d \* \.` \* | \` \_ | ``x ` \*`` \# | `` \* ` |")
    assert cells == [r"`a | b \d \* \.` *", "` _", r"``x ` \*`` #", "`` * `"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("page", "listed"),
    [
        ("|a|b|\n|-|-|\n" + "|" * 1_400_000, 2),
        ("|a|\n|-|\n" + "|1|\n" * 1_100_000, 1_000_000),
        ("| ` \\* |\n|-|\n|" + "`\\*" * 300_000 + "|", 2),
    ],
)
def test_cells_up_to_a_limit_are_described_in_linear_time(page, listed):
    described = json.loads(page_json.describe([page, "|a|\n|-|"], ["first"]))
    found = [cell for table in described["pages"][0]["tables"] for row in table for cell in row]
    assert len(found) == listed
    is_whole = described["pages"][1]["tables"] == [[["a"]]]
    assert is_whole == (described["notes"] == ["first"]) == ("`" in page)


def test_a_pictures_format_is_ignored():
    body = GenerationBody(file=b"Hello", file_name="a.txt")
    for sent, used in ((None, None), ("png", None), ("markdown", "markdown"), ("json", "json")):
        asked = attrs.evolve(body, output_format=sent)
        assert request_of(asked, gateway_documents.ENDPOINT).output_format == used


async def test_a_sale_has_the_json_as_its_first_output(settings, provider, payer):
    data = files.ordinary_files()["report.docx"]
    async with running(settings, provider) as gateway:
        more = {"output_format": "json"}
        header = payer.header(10_000)
        answer = await buy_parsing(gateway, header, "document-parser", data, "report.docx", **more)
        assert answer.status_code == 200, await answer.get_data(as_text=True)
        task = await gateway.wait((await answer.get_json())["taskId"])
        kinds = [output["mimeType"] for output in task["result"]["outputs"]]
        assert kinds == ["application/json", "text/markdown"]
        assert task["result"]["text"].startswith("# Quarterly Report")
        path = task["result"]["outputs"][0]["url"]
        found = await (await gateway.client.get(path.removeprefix(settings.base_url))).get_json()
        assert found["pages"][0]["tables"][0][0] == ["Region", "Orders", "Bags sold", "Revenue"]
        refused = await buy_parsing(gateway, None, "paper", data, **more)
        assert refused.status_code == 400
        assert "output_format json" in (await refused.get_json())["error"]
        refused = await gateway.client.post("/api/x402/picture", json={"prompt": "a", **more})
        assert refused.status_code == 400
        assert "output_format" in (await refused.get_json())["error"]
