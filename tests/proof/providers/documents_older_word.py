"""Word 97 files (.doc) built from their runs."""

import struct

_SECTOR, _END, _FREE, _FAT = 512, 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_TEXT_AT, _FORMATS_AT = 1024, 512
DELETED, HIDDEN = b"\x00\x08\x01", b"\x3c\x08\x01"
PARAGRAPH = "\r"


def doc(*runs: tuple[str, bytes], wide: bool = False, piece: int = 0, groups: bytes = b"") -> bytes:
    """Return a .doc with runs of a text and its properties, in a piece with a modifier `piece`."""
    texts = [text.encode("utf-16-le" if wide else "cp1252") for text, _ in runs]
    whole = b"".join(texts)
    characters = sum(len(text) for text, _ in runs)
    document = bytearray(max(4096, _TEXT_AT + len(whole)))
    document[_TEXT_AT : _TEXT_AT + len(whole)] = whole
    document[_FORMATS_AT : _FORMATS_AT + 512] = _formats(texts, [look for _, look in runs])
    place = _TEXT_AT if wide else _TEXT_AT * 2 | 0x4000_0000
    pieces = struct.pack("<IIHIH", 0, characters, 0, place, piece)
    clx = groups + b"\x02" + struct.pack("<I", len(pieces)) + pieces
    plc = struct.pack("<III", _TEXT_AT, _TEXT_AT + len(whole), _FORMATS_AT // 512)
    for form, at, value in (
        ("<H", 0, 0xA5EC), ("<H", 2, 0xC1), ("<H", 0x0A, 0x0200), ("<I", 0x4C, characters),
        ("<II", 0xFA, (0, len(plc))), ("<II", 0x1A2, (len(plc), len(clx))),
    ):  # fmt: skip
        struct.pack_into(form, document, at, *(value if isinstance(value, tuple) else (value,)))
    return _container({"WordDocument": bytes(document), "1Table": (plc + clx).ljust(4096, b"\0")})


def _formats(texts: list[bytes], looks: list[bytes]) -> bytes:
    page, at = bytearray(512), 510
    place = _TEXT_AT
    for number, (text, look) in enumerate(zip(texts, looks, strict=True)):
        struct.pack_into("<I", page, 4 * number, place)
        place += len(text)
        if look:
            at -= (len(look) + 2) // 2 * 2
            page[at : at + 1 + len(look)] = bytes([len(look)]) + look
            page[4 * (len(texts) + 1) + number] = at // 2
    struct.pack_into("<I", page, 4 * len(texts), place)
    page[511] = len(texts)
    return bytes(page)


def _container(streams: dict[str, bytes]) -> bytes:
    fat, body, entries = [], b"", [_entry("Root Entry", 5, _END, 0, 1)]
    for number, (name, stream) in enumerate(streams.items(), 1):
        padded = stream + bytes(-len(stream) % _SECTOR)
        follows = number + 1 if number < len(streams) else _FREE
        # The longer name is the parent of the shorter one.
        entries.append(_entry(name, 2, len(fat), len(stream), left=follows))
        first = len(fat)
        fat += [*range(first + 1, first + len(padded) // _SECTOR), _END]
        body += padded
    directory = b"".join(entries).ljust(_SECTOR, b"\0")
    start = len(fat)
    fat += [_END, _FAT]
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    header += struct.pack("<HHHHH6xIIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, start, 0, 4096,
                          _END, 0, _END, 0, start + 1)  # fmt: skip
    header = header.ljust(_SECTOR, b"\xff")
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(_SECTOR, b"\xff")
    return header + body + directory + table


def _entry(name: str, kind: int, start: int, size: int, child: int = _FREE, left: int = _FREE):
    text = (name + "\0").encode("utf-16-le")
    return (
        text.ljust(64, b"\0")
        + struct.pack("<HBBIII", len(text), kind, 1, left, _FREE, child)
        + bytes(36)
        + struct.pack("<IQ", start, size)
    )
