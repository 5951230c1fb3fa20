"""Counts the slides of a PowerPoint presentation (.pptx) in a sandboxed process.

It goes from part to part as readers do (ECMA-376 part 2), with a real XML parser. A ZIP container
in which two readers could find different parts is refused.
"""

import io
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from xml.parsers import expat

from gateway.sandbox.errors import SandboxRefusal

_DAMAGED = "The presentation is damaged or incomplete."
_OTHER = "The file is no PowerPoint presentation, or has parts of another kind of document."
# Without a part that names the presentation's own, readers take the usual name.
_USUAL_MAIN = "ppt/presentation.xml"
_SLIDE = re.compile(r"ppt/slides/slide\d+\.xml", re.ASCII | re.IGNORECASE)
# The parts of a Word document and of a workbook; those that slides embed are files of their own.
_OTHER_KINDS = ("word/", "xl/")
# The presentation and the links of 20,000 slides, unpacked.
_MAX_PART_BYTES = 8_000_000
# What `zipfile` raises for a damaged, missing, encrypted or unknown member.
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(KeyError, ValueError, EOFError, RuntimeError),
)
# APPNOTE.TXT §4.3.7 and §4.3.16: the lengths of name and extra field in a member's header, and the
# record at the end of the container.
_LENGTHS = struct.Struct("<HH")
_LENGTHS_AT = 26
_HEADER_BYTES = 30
_END_MAGIC = b"PK\x05\x06"
_END_BYTES = 22

_Attributes = Mapping[str, str]


def count_slides(data: bytes) -> int:
    """Return the largest number: slides in the list, in the links, or by their usual names.

    Raises `SandboxRefusal` for a file that cannot be read, or is no presentation alone.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_container(archive, data)
            slides = _count(archive)
    except (*_UNREADABLE, expat.ExpatError):
        raise SandboxRefusal(_DAMAGED) from None
    if slides == 0:
        raise SandboxRefusal("The presentation is damaged or incomplete: it holds no slides.")
    return slides


def _count(archive: zipfile.ZipFile) -> int:
    names = archive.namelist()
    if any(name.lower().startswith(_OTHER_KINDS) for name in names):
        raise SandboxRefusal(_OTHER)
    main = _find_main(archive, names)
    folder, name = posixpath.split(main)
    links = _Links("/slide")
    _read_part(archive, posixpath.join(folder, "_rels", f"{name}.rels"), links.start)
    listed = _SlideList()
    if main in names:
        _read_part(archive, main, listed.start)
        if listed.root != "presentation":
            raise SandboxRefusal(_OTHER)
    named = sum(1 for name in names if _SLIDE.fullmatch(name))
    return max(len(links.targets), listed.slides, named)


def _find_main(archive: zipfile.ZipFile, names: list[str]) -> str:
    """Return the name of the presentation's own part."""
    if "_rels/.rels" not in names:
        return _USUAL_MAIN
    links = _Links("/officedocument")
    _read_part(archive, "_rels/.rels", links.start)
    if len(links.targets) != 1:
        raise SandboxRefusal(_OTHER)
    main = posixpath.normpath(links.targets[0].lstrip("/"))
    if main not in names:
        raise SandboxRefusal(_DAMAGED)
    return main


class _Links:
    """The targets of a part's relationships whose type has a certain end."""

    def __init__(self, end: str) -> None:
        self._end = end
        self.targets: list[str] = []

    def start(self, _: str, attributes: _Attributes) -> None:
        """Take an element."""
        # OOXML has two namespaces, transitional and strict; their types end alike.
        if attributes.get("Type", "").strip().lower().endswith(self._end):
            self.targets.append(attributes.get("Target", ""))


class _SlideList:
    """The list of slides in the presentation's own part."""

    root = ""
    slides = 0

    def start(self, name: str, attributes: _Attributes) -> None:
        """Take an element; one that names a slide has an id of a link, one of a section has not."""
        local = _local(name)
        self.root = self.root or local
        if local == "sldId" and any(_is_link_id(key) for key in attributes):
            self.slides += 1


def _is_link_id(name: str) -> bool:
    return name.lower().endswith("/relationships id")


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _read_part(
    archive: zipfile.ZipFile, name: str, start: Callable[[str, dict[str, str]], None]
) -> None:
    """Parse a part; refuse one with a document type, which could declare further text."""
    with archive.open(name) as part:
        text = part.read(_MAX_PART_BYTES + 1)
    if len(text) > _MAX_PART_BYTES:
        raise SandboxRefusal("The presentation is too large to count its slides.")
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.Parse(text, True)  # noqa: FBT003 - expat takes it by position


def _refuse_doctype(*_: object) -> None:
    raise SandboxRefusal(_DAMAGED)


def _check_container(archive: zipfile.ZipFile, data: bytes) -> None:
    """Refuse a container that hides members from some readers and shows them to others."""
    members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    names = [member.filename.replace("\\", "/").lstrip("/").lower() for member in members]
    ends_plainly = data[-_END_BYTES:].startswith(_END_MAGIC) and not archive.comment
    if not ends_plainly or len(set(names)) < len(names):
        raise SandboxRefusal(_DAMAGED)
    # Nothing as long as another member's header lies before, between or behind the members.
    starts = [member.header_offset for member in members] + [archive.start_dir]
    ends = [0, *(_end_of(member, data) for member in members)]
    if any(not 0 <= start - end < _HEADER_BYTES for start, end in zip(starts, ends, strict=True)):
        raise SandboxRefusal(_DAMAGED)
    # A part in pieces (ECMA-376 part 2 §7.3.4); no program writes presentations so.
    if any(name.endswith(".piece") for name in names):
        raise SandboxRefusal(_DAMAGED)


def _end_of(member: zipfile.ZipInfo, data: bytes) -> int:
    name, extra = _LENGTHS.unpack_from(data, member.header_offset + _LENGTHS_AT)
    return int(member.header_offset + _HEADER_BYTES + name + extra + member.compress_size)
