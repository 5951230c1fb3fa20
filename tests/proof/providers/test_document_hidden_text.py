"""Text that a PDF hides is left out, and the result says so."""

import documents_layers as layers
import pytest

from gateway_documents.child import libraries, parsing


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


SEEN = "BT /F1 11 Tf 72 700 Td (Seen) Tj ET "


def line(text, before=""):
    return f"{before} BT /F1 11 Tf 72 650 Td ({text}) Tj ET "


PICTURE = "q 400 0 0 40 50 640 cm BI /W 1 /H 1 /BPC 8 /CS /G ID 0 EI Q "


@pytest.mark.parametrize(
    "hidden",
    [
        line("secret", "1 1 1 rg"),
        line("secret", "1 1 1 rg 0 0 595 842 re f"),
        line("secret", "3 Tr"),
        f"/OC /P1 BDC {line('secret')} EMC",
        "BT /F1 11 Tf 72 50 Td (secret below the crop box) Tj ET",
    ],
)
def test_text_that_a_pdf_hides_is_left_out(hidden):
    found = parsing.parse("pdf", layers.write(SEEN + hidden, layer_is_on=False))
    assert found.pages == ["Seen"]
    assert bool(found.notes) == ("crop box" not in hidden)


@pytest.mark.parametrize(
    "shown",
    [
        line("words", "0 0 0.5 rg 50 640 400 40 re f 1 1 1 rg"),
        line("words", "0.9 g"),
        PICTURE + line("words", "3 Tr"),
        line("words", "0 0 1 RG 50 640 400 40 re S 3 Tr"),
        line("words", "1 1 1 rg 0 0 0 RG 2 Tr"),
        f"/OC /P1 BDC {line('words')} EMC",
        "BT /F1 11 Tf 72 650 Td (words) Tj 0.3 0 Td (words) Tj ET",
    ],
)
def test_text_that_a_pdf_shows_or_that_was_recognised_in_a_picture_is_kept_once(shown):
    found = parsing.parse("pdf", layers.write(SEEN + shown))
    assert found.pages[0].startswith("Seen")
    assert found.pages[0].count("words") == 1
    assert found.notes == ()


def test_a_page_of_hidden_text_only_has_no_text():
    found = parsing.parse("pdf", layers.write(line("secret", "3 Tr")))
    assert not found.has_text
    assert found.textless == {0: False}
