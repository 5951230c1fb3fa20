"""Samples: a result beside an offer, which `gateway examples` or a bundled provider has made."""

import re

import attrs
from markupsafe import Markup

from gateway.domain import TEXT, Endpoint
from gateway.web.routes.files import Assets, static_folder
from gateway_shop.examples import Example, Size

_NO_FRAME = "without its frame"
# A number with its unit, such as "$ 148,050".
_AMOUNT = re.compile(r"[^\w\s]? ?\d[\d.,]{0,15} ?[^\w\s]?")
# Sides of the built pictures.
_CARD = (672, 440)
_LARGE = (896, 588)


@attrs.frozen(kw_only=True)
class Picture:
    """A picture as HTML needs it."""

    src: str
    width: int
    height: int
    alt: str


@attrs.frozen(kw_only=True)
class Sample:
    """One result: pictures of different sizes, a laid-out text, or plain text."""

    note: str
    # Of the picture on a card, if it is another one.
    card_note: str = ""
    large: Picture | None = None
    card: Picture | None = None
    thumb: Picture | None = None
    html: Markup | None = None
    text: str = ""


def sample_of(endpoint: Endpoint, example: Example | None, assets: Assets) -> Sample | None:
    """Return the sample of an offer; None if no result was ever made."""
    if example is not None:
        return _from_example(endpoint, example)
    make = _BUILT.get(endpoint.slug)
    return make(assets) if make is not None else None


def is_built(slug: str) -> bool:
    """Whether an endpoint has a sample without `gateway examples`."""
    return slug in _BUILT


def _from_example(endpoint: Endpoint, example: Example) -> Sample:
    model = endpoint.model or endpoint.title
    if example.text is not None:
        note = f"Made here by {model}, from {_name_source(endpoint)}"
        is_markdown = TEXT in endpoint.declaration.results
        html = lay_out(example.text) if is_markdown else None
        return Sample(note=note, html=html, text=example.text)
    source = " and a picture" if endpoint.takes_file else ""
    alt = f"Result of {model} for “{example.prompt}”"

    def picture(size: Size) -> Picture:
        width, height = example.width or 1, example.height or 1
        return Picture(src=example.url(size), width=width, height=height, alt=alt)

    return Sample(
        note=f"Made here by {model}, from “{example.prompt}”{source}",
        large=picture("large"),
        card=picture("card"),
        thumb=picture("thumb"),
    )


def _name_source(endpoint: Endpoint) -> str:
    schema = " and a JSON Schema" if endpoint.declaration.prompt.check is not None else ""
    return f"a report of two pages{schema}"


def lay_out(markdown: str) -> Markup:
    """Return Markdown as HTML without headings, links, pictures and styles.

    A sample's headings are no headings of the page, and its text is a vendor's.
    """
    # Slow to import, and most pages show pictures.
    from markdown_it import MarkdownIt  # noqa: PLC0415

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.disable(["link", "image", "autolink"])
    tokens = reader.parse(markdown)
    for token in tokens:
        is_right = "right" in str(token.attrs.pop("style", ""))
        if token.type == "heading_open":
            token.attrs["class"], token.tag = f"head {token.tag}", "p"
        elif token.type == "heading_close":
            token.tag = "p"
        elif is_right:
            token.attrs["class"] = "n"
        elif token.type == "inline" and _AMOUNT.fullmatch(token.content):
            for part in token.children or ():
                part.content = part.content.replace(" ", "\u00a0")
    # markdown-it escapes all text.
    return Markup(reader.renderer.render(tokens, reader.options, {}))  # noqa: S704


def _lake(assets: Assets) -> Sample:
    lake, city = (
        "A mountain lake in the evening: an orange sky, pines, and one small boat on the water",
        "A city at dawn: towers in violet haze, mirrored in a river",
    )
    return Sample(
        note=f"Made here, from “a mountain lake in the evening, one small boat”, {_NO_FRAME}",
        large=_built(assets, "sandbox.webp", _LARGE, lake),
        card_note="Made here, from “a city at dawn, seen from the hills”",
        card=_built(assets, "sandbox-city.webp", _CARD, city),
        thumb=_built(assets, "sandbox-city.webp", _CARD, city),
    )


def _winter(assets: Assets) -> Sample:
    alt = "The same mountain lake in winter: pale colours, and falling snow"
    picture = _built(assets, "sandbox-edit.webp", _LARGE, alt)
    note = "Made here, from a lake in the evening and “make it winter, with falling snow”"
    return Sample(
        note=f"{note}, {_NO_FRAME}", card_note=note, large=picture, card=picture, thumb=picture
    )


def _report(_: Assets) -> Sample:
    text = _read("document-sample.md")
    return Sample(note="Made here, from a PDF of two pages", html=lay_out(text), text=text)


def _data(_: Assets) -> Sample:
    note = "Made here, from a PDF of two pages and a JSON Schema"
    return Sample(note=note, text=_read("extraction-sample.json"))


def _built(assets: Assets, name: str, size: tuple[int, int], alt: str) -> Picture:
    return Picture(src=assets.url(name), width=size[0], height=size[1], alt=alt)


def _read(name: str) -> str:
    return (static_folder() / "pages" / name).read_text("utf-8")


# The bundled endpoints of which a real result is among the built files.
_BUILT = {
    "sandbox-image": _lake,
    "sandbox-image-edit": _winter,
    "document-parser": _report,
    "sandbox-extract": _data,
}
