"""Examples: results that `gateway examples` made, in a table of the shop.

The command writes them, in another process or on another machine. The pages read them twice a
minute, and keep the files of those that were shown.
"""

from collections.abc import Mapping
from typing import Literal

import attrs

from gateway.domain import Endpoint
from gateway.errors import NotFound
from gateway.store import SqlStore
from gateway.store.sql import Connection

Size = Literal["large", "card", "thumb"]
# The longest side of each size, in pixels.
SIDES: Mapping[Size, int] = {"large": 1024, "card": 560, "thumb": 128}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Example:
    """One result; it has a picture or a text."""

    slug: str
    # The model that made it. After a change of the model it is not shown.
    model: str
    prompt: str
    # Unix seconds.
    made_at: float
    # The beginning of a text.
    text: str | None
    # Of the picture at size `large`.
    width: int | None
    height: int | None
    # Of the picture: the beginning of its SHA-256.
    digest: str | None

    def url(self, size: Size) -> str:
        """Return the path of the picture; it changes with the picture."""
        return f"/examples/{self.slug}.{self.digest}.{size}.webp"


Pictures = Mapping[Size, bytes]
_COLUMNS = "slug, model, prompt, made_at, text, width, height, digest"


def save(db: Connection, example: Example, pictures: Pictures) -> None:
    """Insert an example, in place of the endpoint's earlier one."""
    db.execute("DELETE FROM shop_examples WHERE slug = ?", (example.slug,))
    values = [getattr(example, name) for name in _COLUMNS.split(", ")]
    values += [pictures.get(size) for size in SIDES]
    db.execute(
        f"INSERT INTO shop_examples ({_COLUMNS}, {', '.join(SIDES)}) "  # noqa: S608 - constants
        f"VALUES ({', '.join('?' for _ in values)})",
        values,
    )


def remove(db: Connection, slug: str) -> bool:
    """Delete an endpoint's example; False if it has none."""
    found = find_all(db)
    db.execute("DELETE FROM shop_examples WHERE slug = ?", (slug,))
    return slug in found


def find_all(db: Connection) -> dict[str, Example]:
    """Return all examples by slug."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM shop_examples ORDER BY slug")  # noqa: S608 - constants
    names = _COLUMNS.split(", ")
    return {row["slug"]: Example(**{name: row[name] for name in names}) for row in rows}


def _read_picture(db: Connection, slug: str, digest: str, size: Size) -> bytes | None:
    row = db.execute(
        f"SELECT {size} FROM shop_examples WHERE slug = ? AND digest = ?",  # noqa: S608 - constants
        (slug, digest),
    ).fetchone()
    return None if row is None or row[0] is None else bytes(row[0])


@attrs.define(eq=False, repr=False)
class Examples:
    """The examples of a running gateway."""

    _store: SqlStore
    _by_slug: dict[str, Example] = attrs.field(factory=dict)
    # By the name in the path.
    _pictures: dict[str, bytes] = attrs.field(factory=dict, repr=False)
    # Counts the changes, so that a page is rendered again after one.
    version: int = 0

    async def load(self) -> None:
        """Read which examples there are."""
        found = await self._store.read(find_all)
        if found != self._by_slug:
            self._by_slug = found
            self._pictures.clear()
            self.version += 1

    def of(self, endpoint: Endpoint) -> Example | None:
        """Return an endpoint's example, if its model has made one."""
        example = self._by_slug.get(endpoint.slug)
        return example if example is not None and example.model == endpoint.model else None

    async def picture(self, name: str) -> bytes:
        """Return a picture by its name in the path; raises `NotFound`.

        Only names of known examples reach the database, each once.
        """
        if name not in self._pictures:
            self._pictures[name] = await self._read(name)
        return self._pictures[name]

    async def _read(self, name: str) -> bytes:
        for example in self._by_slug.values():
            for size in SIDES:
                if example.digest and example.url(size) == f"/examples/{name}":
                    data = await self._store.read(_read_picture, example.slug, example.digest, size)
                    if data is not None:
                        return data
        raise NotFound("There is no such example. GET / shows what is sold here.")
