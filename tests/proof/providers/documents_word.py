"""Word files from pieces of their XML."""

from documents_files import WORD, archive

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_NAMES = " ".join(
    f'xmlns:{short}="{name}"'
    for short, name in {
        "w": WORD,
        "r": f"{_OFFICE}/relationships",
        "m": f"{_OFFICE}/math",
        "v": "urn:schemas-microsoft-com:vml",
        "o": "urn:schemas-microsoft-com:office:office",
    }.items()
)
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_ROOTS = {"header": "hdr", "footer": "ftr"}


def word(body: str, *, strict: bool = False, links: str = "", files=None, **parts: str) -> bytes:
    """Return a .docx; `parts` have the inside of `styles`, `numbering`, `header1` and others."""
    members = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels"'
        f' ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        f'PartName="/word/document.xml" ContentType="{_TYPE}"/></Types>',
        "_rels/.rels": _links(_link("officeDocument", "word/document.xml")),
        "word/_rels/document.xml.rels": _links(
            links + "".join(_link(name.rstrip("0123456789"), f"{name}.xml", name) for name in parts)
        ),
        "word/document.xml": f"<w:document {_NAMES}><w:body>{body}</w:body></w:document>",
    }
    for name, inside in parts.items():
        kind = name.rstrip("0123456789")
        root = f"w:{_ROOTS.get(kind, kind)}"
        members[f"word/{name}.xml"] = f"<{root} {_NAMES}>{inside}</{root}>"
    if strict:
        members = {name: _strict(member) for name, member in members.items()}
    return archive({**members, **(files or {})})


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(text: str, properties: str = "") -> str:
    inner = text if text.startswith("<") or not text else run(text)
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner}</w:p>"


def table(*rows: tuple[str, ...]) -> str:
    return "<w:tbl>" + "".join(
        "<w:tr>" + "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) + "</w:tr>"
        for row in rows
    ) + "</w:tbl>"  # fmt: skip


def numbered(text: str, number: int, level: int = 0) -> str:
    """Return a paragraph of the list `number`."""
    place = f'<w:ilvl w:val="{level}"/><w:numId w:val="{number}"/>'
    return paragraph(text, f"<w:numPr>{place}</w:numPr>")


def equation(inside: str) -> str:
    return f"<m:oMath>{inside}</m:oMath>"


def math(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def _links(links: str) -> str:
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>'


def _link(kind: str, target: str, name: str = "rId1") -> str:
    return f'<Relationship Id="{name}" Type="{_OFFICE}/relationships/{kind}" Target="{target}"/>'


def _strict(member: str) -> str:
    for name in ("wordprocessingml/2006/main", "officeDocument/2006/"):
        strict = name.replace("2006/", "")
        member = member.replace(
            f"http://schemas.openxmlformats.org/{name}", f"http://purl.oclc.org/ooxml/{strict}"
        )
    return member
