"""Text in any charset: short and long, without a mark, damaged, or under a wrong label."""

import pytest

from gateway_documents.child import libraries, parsing
from gateway_documents.child.text.charsets import decode
from gateway_documents.errors import Unreadable


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def page(text, charset, label):
    head = f'<meta http-equiv=Content-Type content="text/html; charset={label}">'
    return "\n\n".join(parsing.parse("html", f"{head}<p>{text}</p>".encode(charset)).pages)


SENTENCES = (
    "Сегодня хорошая погода, и мы идём гулять в парк.",
    "Σήμερα ο καιρός είναι καλός και πάμε βόλτα.",
    "היום מזג האוויר נעים ואנחנו הולכים לטייל.",
    "الطقس جميل اليوم ونحن نذهب للتنزه.",
    "วันนี้อากาศดีและเราไปเดินเล่นในสวน\n",
    "今日は天気がいいので、公園を散歩します。",
    "今天天气很好，我们去公园散步。",
    "오늘은 날씨가 좋아서 공원을 산책합니다.",
    "Heute ist schönes Wetter.",
)


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", SENTENCES)
@pytest.mark.parametrize("times", [1, 200])
def test_wide_charsets_are_read_without_a_mark(text, charset, times):
    data = (text * times).encode(charset)
    assert decode(data).text == text * times


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("cp1250", "Ma szép az idő, és sétálni megyünk a parkba, mert nem esik"),
        ("cp1250", "Dzisiaj jest ładna pogoda i idziemy na spacer"),
        ("iso8859_2", "Dnes je pekné počasie a ideme na prechádzku"),
        ("iso8859_2", "Danas je lijepo vrijeme i idemo u šetnju"),
        ("cp1257", "Šodien ir jauks laiks, un mēs ejam pastaigāties"),
        ("cp852", "Dzisiaj jest ładna pogoda i idziemy na spacer"),
        ("cp850", "Heute ist schönes Wetter und wir gehen spazieren"),
        ("mac_roman", "I dag är det fint väder och vi går på promenad"),
        ("cp1252", "I dag er det godt vejr, og vi går en tur"),
        ("cp1251", "id;name\n1;Накладная № 1234 от 15;100,50\n"),
        ("cp932", "ｺｰﾋｰを1杯、ﾊﾟﾝを2個買いました。"),
        ("cp437", "┌──────┬──────┐\n│ Größe│ Menge│\n└──────┴──────┘\n"),
        ("cp1252", "Temp;Fläche\n25 °C;3 m²\n"),
        ("cp1252", "25 °C;3 m²"),
        ("cp1252", "Total: £25.00"),
        ("cp1252", "“Smart” quotes – and 5 €"),
    ],
)
def test_a_sentence_is_read_in_the_charset_of_its_language(charset, text):
    assert decode(text.encode(charset)).text == text


def test_a_damaged_character_does_not_change_the_charset():
    words = "größer und schöner " * 30
    assert decode(words.encode() + "ü".encode()[:1]).text == f"{words}\ufffd"
    assert decode(words.encode() + b"\xff ok").text == f"{words}\ufffd ok"
    assert decode(b"\xef\xbb\xbfGr\xc3\xb6\xc3\x9fe \xff").text == "Größe \ufffd"
    assert decode("Grüße".encode("utf-16")[:-1]).text == "Grüß\ufffd"
    # One letter only is no UTF-8 with a damaged letter.
    assert decode("Café".encode("cp1252")).text == "Café"


def test_a_few_control_characters_are_left_out_and_many_refused():
    text = "A long page with words. " * 20
    for control in "\0\x01\x08\x1f":
        assert decode(f"{text}{control}.".encode()).text == f"{text}."
    assert decode(b"\0" * 500 + text.encode() + b"\x1a").text == text
    assert decode("\x1b[31mgrößer\x1b[0m".encode()).text == "\x1b[31mgrößer\x1b[0m"
    with pytest.raises(Unreadable, match="no control character"):
        decode(b"\x01\x02" * 50)


@pytest.mark.parametrize(
    ("label", "charset", "text"),
    [
        ("x-sjis", "cp932", "日本語"),
        ("Windows-31J", "cp932", "日本語①"),
        ("windows-874", "cp874", "ภาษาไทย"),
        ("iso-8859-8-i", "iso8859_8", "שלום"),
        ("x-mac-cyrillic", "mac_cyrillic", "Привет"),
        ("x-x-big5", "big5", "中文"),
        ("iso-8859-1", "cp1252", "“café” – 5 €"),
        ("gb2312", "gb18030", "中文镕"),
        # Labels that lie.
        ("iso-8859-1", "utf-8", "“café” – 5 €"),
        ("utf-8", "cp1252", "“café” – 5 €"),
        ("utf-16", "cp1252", "“café” – 5 €"),
        ("iso-8859-1", "cp1251", "Сегодня хорошая погода, и мы идём гулять"),
    ],
)
def test_a_page_is_read_with_its_label_unless_it_is_wrong(label, charset, text):
    assert page(text, charset, label).startswith(text)


@pytest.mark.parametrize("text", [b"a\0b", b"Line one\0\nline two is longer\0 end"])
def test_ascii_with_stray_nuls_is_no_utf_16(text):
    with pytest.raises(Unreadable, match="control character"):
        decode(text)
