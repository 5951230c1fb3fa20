"""A disk built from the records of power.c: its content after a power cut at some moment.

A write is durable once its file was synced, a new or removed name once its folder was. Unsynced
data may have arrived nevertheless, in any order, and torn between sectors.
"""

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import attrs

_HEAD = struct.Struct("=IIQQQ")
_SECTORS = (512, 4096)  # bytes that arrive whole
_MEMORY_ONLY = "-shm"  # shared memory in a file's clothes; SQLite makes it anew


@attrs.frozen
class Record:
    """One operation on the disk; `end` is the log's size after it."""

    kind: str  # Create, Write, Truncate, Sync, Directory synced, Unlink
    path: str
    inode: int
    offset: int
    size: int
    data: bytes = attrs.field(repr=False)
    end: int


def records(log: Path) -> Iterator[Record]:
    """Read the log, without an incomplete last record."""
    with log.open("rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            kind, path_size, inode, offset, size = _HEAD.unpack(head)
            path = file.read(path_size).decode()
            data = file.read(size) if chr(kind) == "W" else b""
            if chr(kind) == "W" and len(data) < size:
                return
            yield Record(chr(kind), path, inode, offset, size, data, file.tell())


@attrs.define(eq=False)
class File:
    """One file: its durable content, and the operations since its last sync."""

    durable: bytearray = attrs.field(factory=bytearray)
    pending: list[Record] = attrs.field(factory=list)

    def sync(self) -> None:
        for record in self.pending:
            apply(self.durable, record)
        self.pending.clear()

    def content(self, chance: random.Random | None) -> bytes:
        """Return the content after a power cut; with `chance`, also some of the unsynced data."""
        left = bytearray(self.durable)
        if chance is not None:
            for record in self.pending:
                if chance.random() < 0.5:
                    arrive(left, record, chance)
        return bytes(left)


def apply(content: bytearray, record: Record) -> None:
    if record.kind == "T":
        _resize(content, record.size)
        return
    _resize(content, max(len(content), record.offset + record.size))
    content[record.offset : record.offset + record.size] = record.data


def arrive(content: bytearray, record: Record, chance: random.Random) -> None:
    """Write all sectors, or only some."""
    if record.kind == "T" or chance.random() < 0.5:
        apply(content, record)
        return
    sector = chance.choice(_SECTORS)
    for start in range(0, record.size, sector):
        if chance.random() < 0.7:
            part = record.data[start : start + sector]
            offset = record.offset + start
            apply(content, attrs.evolve(record, offset=offset, size=len(part), data=part))


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


@attrs.define(eq=False)
class Disk:
    """The folder's files by name, and the durable names."""

    names: dict[str, File] = attrs.field(factory=dict)
    durable_names: dict[str, File] = attrs.field(factory=dict)
    _by_inode: dict[int, File] = attrs.field(factory=dict)

    def do(self, record: Record) -> None:
        """Apply one record."""
        if record.path.endswith(_MEMORY_ONLY):
            return
        if record.kind == "C":
            self.names[record.path] = self._by_inode[record.inode] = File()
        elif record.kind == "U":
            self.names.pop(record.path, None)
        elif record.kind == "D":
            self.durable_names = dict(self.names)
        elif record.kind == "S":
            self._by_inode[record.inode].sync()
        else:
            self._by_inode[record.inode].pending.append(record)

    def image(self, chance: random.Random | None = None) -> dict[str, bytes]:
        """Return the files after a power cut now, by name."""
        names = dict(self.durable_names)
        if chance is not None:
            for path in self.names.keys() | names.keys():
                if chance.random() < 0.5:
                    _take(names, path, self.names.get(path))
        return {Path(path).name: file.content(chance) for path, file in names.items()}


def _take(names: dict[str, File], path: str, file: File | None) -> None:
    if file is None:
        names.pop(path, None)
    else:
        names[path] = file
