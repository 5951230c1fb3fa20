"""Counts the slides of a PowerPoint presentation (.pptx) in a sandboxed process.

It follows the parts as readers do (ECMA-376 part 2), with a real XML parser. It refuses a ZIP
container in which two readers could find different parts.
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
# Readers fall back to this name if no relationship names the main part.
_USUAL_MAIN = "ppt/presentation.xml"
_PACKAGE_LINKS = "_rels/.rels"
# A target that every reader resolves alike: no escapes, no empty or relative segments.
_PLAIN_TARGET = re.compile(r"/?((?:\w[\w.-]*/)*\w[\w.-]*)", re.ASCII)
_SLIDE = re.compile(r"ppt/slides/slide\d+\.xml", re.ASCII | re.IGNORECASE)
# Parts of a Word document or workbook. Those embedded in slides are separate files.
_OTHER_KINDS = ("word/", "xl/")
# Enough for the presentation and relationships of 20,000 slides, unpacked.
_MAX_PART_BYTES = 8_000_000
# Errors of `zipfile` for a damaged, missing, encrypted or unknown member.
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(KeyError, ValueError, EOFError, RuntimeError),
)
# APPNOTE.TXT §4.3.7: the lengths of name and extra field in a member's header.
_LENGTHS = struct.Struct("<HH")
_LENGTHS_AT = 26
_HEADER_BYTES = 30
# §4.3.12: a directory entry without name, extra field and comment.
_ENTRY_BYTES = 46
# §4.3.16: the end record: magic, two disk numbers, entries on this disk and in total, size and
# offset of the directory, length of the comment.
_END = struct.Struct("<4s4H2LH")
_END_MAGIC = b"PK\x05\x06"
# §4.3.15: the ZIP64 locator, directly before that record.
_LOCATOR_MAGIC = b"PK\x06\x07"
_LOCATOR_BYTES = 20
_UTF8_NAME = 0x800

_Attributes = Mapping[str, str]


def count_slides(data: bytes) -> int:
    """Return the largest count: slides in the list, in the relationships, or by their usual names.

    Raises `SandboxRefusal` for a file that is unreadable or not purely a presentation.
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
    if _has(names, main):
        _read_part(archive, main, listed.start)
        if listed.root != "presentation":
            raise SandboxRefusal(_OTHER)
    named = sum(1 for name in names if _SLIDE.fullmatch(name))
    return max(len(links.targets), listed.slides, named)


def _find_main(archive: zipfile.ZipFile, names: list[str]) -> str:
    if not _has(names, _PACKAGE_LINKS):
        return _USUAL_MAIN
    links = _Links("/officedocument")
    _read_part(archive, _PACKAGE_LINKS, links.start)
    if len(links.targets) != 1:
        raise SandboxRefusal(_OTHER)
    target = _PLAIN_TARGET.fullmatch(links.targets[0])
    if target is None or target[1] not in names:
        raise SandboxRefusal(_DAMAGED)
    return target[1]


def _has(names: list[str], name: str) -> bool:
    """Refuse a name in another case, which only some readers find."""
    if name in names:
        return True
    if name.lower() in (other.lower() for other in names):
        raise SandboxRefusal(_DAMAGED)
    return False


class _Links:
    """Targets of the relationships with a certain type suffix."""

    def __init__(self, end: str) -> None:
        self._end = end
        self.targets: list[str] = []

    def start(self, _: str, attributes: _Attributes) -> None:
        """Handle an element."""
        # OOXML has two namespaces, transitional and strict; their types end alike.
        if attributes.get("Type", "").strip().lower().endswith(self._end):
            self.targets.append(attributes.get("Target", ""))


class _SlideList:
    root = ""
    slides = 0

    def start(self, name: str, attributes: _Attributes) -> None:
        """Handle an element. A slide has a relationship id; an entry of a section has not."""
        local = name.rpartition(" ")[2]
        self.root = self.root or local
        has_link = any(key.lower().endswith("/relationships id") for key in attributes)
        self.slides += local == "sldId" and has_link


def _read_part(
    archive: zipfile.ZipFile, name: str, start: Callable[[str, dict[str, str]], None]
) -> None:
    """Refuse a document type declaration, which could declare entities."""
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
    """Refuse a container that shows some readers other members than others."""
    members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    _check_directory(archive, members, data)
    _check_names([member.filename for member in members])
    # There is no room for another member's header before, between or after the members.
    starts = [member.header_offset for member in members] + [archive.start_dir]
    ends = [0, *(_end_of(member, data) for member in members)]
    if any(not 0 <= start - end < _HEADER_BYTES for start, end in zip(starts, ends, strict=True)):
        raise SandboxRefusal(_DAMAGED)


def _check_directory(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], data: bytes) -> None:
    """Refuse if readers could find another directory than `zipfile` did."""
    end = len(data) - _END.size
    size = sum(_ENTRY_BYTES + len(_raw_name(member)) + len(member.extra) for member in members)
    # `zipfile` skips bytes before the container, and prefers a ZIP64 record.
    total = len(members)
    expected = (_END_MAGIC, 0, 0, total, total, size, archive.start_dir, 0)
    if _END.unpack_from(data, end) != expected or archive.start_dir + size != end:
        raise SandboxRefusal(_DAMAGED)
    if data.startswith(_LOCATOR_MAGIC, end - _LOCATOR_BYTES):
        raise SandboxRefusal(_DAMAGED)
    if any(member.comment or member.filename != member.orig_filename for member in members):
        raise SandboxRefusal(_DAMAGED)


def _check_names(names: list[str]) -> None:
    if len({name.lower() for name in names}) < len(names):
        raise SandboxRefusal(_DAMAGED)
    for name in names:
        segments = name.removesuffix("/").split("/")
        if "%" in name or "\\" in name or not {"", ".", ".."}.isdisjoint(segments):
            raise SandboxRefusal(_DAMAGED)
        # A part in pieces (ECMA-376 part 2 §7.3.4); no program writes presentations that way.
        if name.lower().endswith(".piece"):
            raise SandboxRefusal(_DAMAGED)


def _raw_name(member: zipfile.ZipInfo) -> bytes:
    return member.orig_filename.encode("utf-8" if member.flag_bits & _UTF8_NAME else "cp437")


def _end_of(member: zipfile.ZipInfo, data: bytes) -> int:
    """Refuse a member whose header has another name."""
    name, extra = _LENGTHS.unpack_from(data, member.header_offset + _LENGTHS_AT)
    start = member.header_offset + _HEADER_BYTES
    if data[start : start + name] != _raw_name(member):
        raise SandboxRefusal(_DAMAGED)
    return int(start + name + extra + member.compress_size)
