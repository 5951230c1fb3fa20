"""A logo is accepted for its content, never for its name."""

import io

import pytest
from PIL import Image

from gateway.errors import SettingsError
from gateway_shop.logo import MAX_BYTES, read_logo
from gateway_shop.settings import ShopSettings

SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{}</svg>'


def logo(path, data: bytes | str):
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_logo(ShopSettings(logo_file=path))


@pytest.mark.parametrize(("kind", "type_"), [("PNG", "png"), ("JPEG", "jpeg"), ("WEBP", "webp")])
def test_a_picture_is_known_by_its_content(tmp_path, kind, type_):
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, kind)
    found = logo(tmp_path / "logo.svg", file.getvalue())
    assert found.media_type == f"image/{type_}"
    assert found.data == file.getvalue()


@pytest.mark.parametrize(
    "inside",
    [
        '<path d="M0 0h9v9z" fill="#0f766e"/>',
        '<defs><linearGradient id="a"/></defs><rect fill="url(#a)"/><use xlink:href="#b"/>',
        "<style>rect { fill: url(#a); stroke: red }</style>",
        '<image href="data:image/png;base64,iVBORw0KGgo="/>',
        '<g xmlns:i="http://www.inkscape.org/" i:export-filename="C:\\logos\\url(1).png"/>',
    ],
)
def test_a_drawing_that_only_draws_is_accepted(tmp_path, inside):
    assert logo(tmp_path / "logo", SVG.format(inside)).media_type == "image/svg+xml"


@pytest.mark.parametrize(
    ("inside", "problem"),
    [
        ("<script>alert(1)</script>", "<script>"),
        ("<SCRIPT/>", "<script>"),
        ('<rect onload="alert(1)"/>', "onload"),
        ("<foreignObject/>", "<foreignobject>"),
        ('<a href="javascript:alert(1)"/>', "links to 'javascript:"),
        ('<use xlink:href="https://example.com/a.svg#b"/>', "links to 'https://example.com"),
        ('<image href="data:image/svg+xml,%3Csvg/%3E"/>', "links to 'data:image/svg"),
        ('<set attributeName="href" to="javascript:alert(1)"/>', "<set>"),
        ('<animate attributeName="href"/>', "<animate>"),
        ('<rect fill="url(https://example.com/t)"/>', "loads something"),
        ("<style>@import 'https://example.com/a.css';</style>", "loads something"),
        ("<style>rect { fill: u\\72l(https://example.com) }</style>", "loads something"),
        ("<?xml-stylesheet href='https://example.com/a.css'?>", "processing instruction"),
    ],
)
def test_a_drawing_that_does_more_is_refused_with_the_reason(tmp_path, inside, problem):
    with pytest.raises(SettingsError, match="Save it as PNG, or as plain SVG") as error:
        logo(tmp_path / "logo.svg", SVG.format(inside))
    assert problem in str(error.value)
    assert "GATEWAY_LOGO_FILE=" in str(error.value)


def test_entities_are_neither_read_nor_accepted(tmp_path):
    bomb = f'<!DOCTYPE svg [<!ENTITY a "b">]>{SVG.format("<text>&a;</text>")}'
    with pytest.raises(SettingsError, match="DOCTYPE"):
        logo(tmp_path / "logo.svg", bomb)


@pytest.mark.parametrize(
    "data", [b"", b"GIF89a", b"<html></html>", b"%PDF-1.7", b"RIFF0000WAVE", b"<svg"]
)
def test_another_type_is_refused_whatever_its_name(tmp_path, data):
    with pytest.raises(SettingsError, match="no PNG, JPEG, WebP or SVG"):
        logo(tmp_path / "logo.png", data)


def test_a_logo_that_is_missing_or_too_large_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"logo.png: it cannot be read \(No such file"):
        read_logo(ShopSettings(logo_file=tmp_path / "logo.png"))
    with pytest.raises(SettingsError, match="more than 200 KB"):
        logo(tmp_path / "logo.png", b"\x89PNG\r\n\x1a\n" + bytes(MAX_BYTES))


def test_a_file_and_an_address_are_one_too_many(tmp_path):
    path = tmp_path / "logo.svg"
    path.write_text(SVG.format(""))
    with pytest.raises(SettingsError, match="remove one of them"):
        read_logo(ShopSettings(logo_file=path, logo_url="https://example.com/logo.svg"))


def test_the_name_changes_with_the_content(tmp_path):
    names = {logo(tmp_path / "logo.svg", SVG.format(f"<path d='M{x}'/>")).name for x in (1, 2)}
    assert len(names) == 2
