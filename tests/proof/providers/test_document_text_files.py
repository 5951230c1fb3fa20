"""Text and CSV files: charsets, control characters, delimiters."""

import pytest
from documents_files import notes, parsed, refusal

from gateway_documents.child import libraries
from gateway_documents.child.text.charsets import decode


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("cp1252", "Café déjà vu"),
        ("cp1252", "Grüße aus Köln"),
        ("cp1252", "São Paulo não é a capital"),
        ("cp1252", "“Quoted” – £5.00"),
        ("cp1250", "Żółć gęślą jaźń"),
        ("cp1250", "Jméno,Město\nŽofie,Plzeň"),
        ("iso8859_2", "Příliš žluťoučký kůň"),
        ("cp1254", "İstanbul'da güneşli bir gün, çok güzel, öğle"),
        ("cp1251", "Имя,Город\nАнна,Москва"),
        ("koi8_r", "Сегодня хорошая погода, и мы идём гулять.\n" * 3),
        ("cp866", "Сегодня хорошая погода, и мы идём гулять."),
        ("cp1253", "Σήμερα ο καιρός είναι καλός"),
        ("cp1256", "الطقس جميل اليوم ونحن نذهب للتنزه"),
        ("cp932", "今日は天気がいいので公園へ散歩に行きます。"),
        ("gbk", "今天天气很好，我们去公园散步。"),
        ("big5", "今天天氣很好，我們去公園散步。"),
        ("cp949", "이름,도시\n영희,서울"),
        ("cp874", "วันนี้อากาศดีมาก เราไปเดินเล่นกัน"),
        ("utf_16_le", "a;b\nä;ö"),
        ("utf_16_be", "a;b\nä;ö"),
        ("utf_32_le", "a;b"),
        ("utf_8_sig", "Zoë"),
    ],
)
def test_text_without_a_declared_charset_is_read(charset, text):
    assert decode(text.encode(charset)).text == text


def test_a_guess_from_a_few_letters_is_stated_and_others_are_not():
    assert "a guess" in notes("csv", "Žofie,Plzeň".encode("cp1250"))
    assert "cp1250" in notes("csv", "Žofie,Plzeň".encode("cp1250"))
    assert notes("csv", "Jméno,Město\n".encode()) == ""
    assert notes("text", "Grüße, schöne Straße, Mühe, Käse. ".encode("cp1252") * 60) == ""


def test_a_page_may_declare_its_charset_behind_a_long_comment():
    head = f"<html><head><!-- {'x' * 3000} --><meta charset='euc-jp'></head>"
    assert parsed("html", f"{head}<p>日本語</p>".encode("euc_jp")) == "日本語"


@pytest.mark.parametrize("data", [b"", b" \r\n\0", b"\xff\xfe"])
def test_an_empty_text_is_refused(data):
    assert refusal("text", data) in ("The file is empty.", "The file contains no text.")


def test_control_characters_show_that_a_file_is_no_text_but_a_stray_del_does_not():
    assert "control character U+0001" in refusal("csv", b"a,b\n\x01,c")
    assert "One" in parsed("html", b"<p>One \x7f odd character</p>")


def test_form_feeds_part_pages_of_text():
    assert parsed("text", b"page one\fpage two") == "page one\n\npage two"


def test_rich_text_under_another_name_is_refused():
    assert "name it .rtf" in refusal("text", b"{\\rtf1 hello}")


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("a,b\n1,2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("sep=;\na;b\n1;2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("a;b\n1,5;2,5\n3,5;4,5\n", "| a | b |\n| --- | --- |\n| 1,5 | 2,5 |\n| 3,5 | 4,5 |"),
        (
            '"Last, first";age\n"Doe, J.";5\n',
            "| Last, first | age |\n| --- | --- |\n| Doe, J. | 5 |",
        ),
        ("a\tb, c\n1\t2, 3\n", "| a | b, c |\n| --- | --- |\n| 1 | 2, 3 |"),
        ("Sales 2026\n\na,b\n1,2\n", "Sales 2026\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("one\ntwo\n", "| one |\n| --- |\n| two |"),
        ("a,b\nx|y,2\n", "| a | b |\n| --- | --- |\n| x\\|y | 2 |"),
    ],
)
def test_a_csv_is_read_with_its_delimiter(text, table):
    assert parsed("csv", text.encode()) == table
