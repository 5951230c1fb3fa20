"""False alarms of the acceptance of results, on folders of real pictures and documents.

Each picture is an order of its own size and format, and its own result. Each other file is parsed
by the built-in parser. Whether an alarm is false is for a person to see, so every one is printed.
"""

import argparse
import asyncio
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import attrs
from place import IS_SMOKE
from rich.table import Table
from tables import print_head, print_tables

from gateway import GenerationRequest, Job, Output, Result
from gateway.domain import MAX_FILE_BYTES, PICTURE_FORMATS, PICTURE_TYPES, Attachment
from gateway.errors import ContentPolicy, InvalidInput, NotAsOrdered, ResultUnusable, Transient
from gateway.sandbox.kinds import ResultChecks
from gateway.sandbox.pages import Pages
from gateway.sandbox.pictures import Pictures
from gateway.tasks.delivery import check_result
from gateway_documents.kinds import KINDS, PICTURES
from gateway_documents.provider import DocumentParser
from gateway_testing.facts import ENDPOINT

_PAPER = attrs.evolve(ENDPOINT, slug="paper", capability="document-parsing")
_ENDS = _SOLD, _REFUSED, _UNREAD, _ALARM = (
    "sold",
    "refused before payment",
    "failed after it",
    "alarm",
)
_FORMATS = {media_type: name for name, media_type in PICTURE_TYPES.items()}
_SURE = 0.95


class _Attempt:
    """What the parser asks of a job."""

    async def progress(self, fraction: float, note: str = "") -> None: ...


@attrs.define
class Orders:
    """Orders files, and accepts the results."""

    pictures: Pictures = attrs.field(factory=Pictures)
    pages: Pages = attrs.field(factory=Pages)
    parser: DocumentParser = attrs.field(factory=DocumentParser)

    async def end_of(self, path: Path, kind: str) -> tuple[str, str]:
        """Return one of `_ENDS`, and the reason."""
        data = await asyncio.to_thread(path.read_bytes)
        end = _REFUSED
        try:
            if kind == "picture":
                end = _UNREAD
                request, result = await self._picture(data)
            else:
                request = await self._order(Attachment(name=f"a{kind}", data=data))
                end = _UNREAD
                result = await self._parse(request)
            least = {"": math.prod(map(int, (request.aspect_ratio or "0:0").split(":")))}
            picture = attrs.evolve(ENDPOINT, least_pixels=least)
            endpoint = picture if kind == "picture" else _PAPER
            await check_result(result, request, endpoint, ResultChecks(self.pictures))
        except (InvalidInput, Transient) as error:
            return end, str(error)
        except (NotAsOrdered, ResultUnusable, ContentPolicy) as error:
            return _ALARM, str(error)
        return _SOLD, ""

    async def _picture(self, data: bytes) -> tuple[GenerationRequest, Result]:
        result = Result(outputs=(Output(data=data, media_type="image/png"),))
        measured = cast(Output, (await self.pictures.check(result, None)).outputs[0])
        ratio = f"{measured.width}:{measured.height}"
        wanted = _FORMATS[measured.media_type]
        return GenerationRequest(prompt="a", aspect_ratio=ratio, output_format=wanted), result

    async def _order(self, attachment: Attachment) -> GenerationRequest:
        if len(attachment.data) > MAX_FILE_BYTES:
            raise InvalidInput("The file is too large.")
        try:
            pages = await self.pages.count(attachment)
        except InvalidInput:
            # The built-in parser's files are not counted, so it also takes damaged ones.
            pages = None
        request = GenerationRequest(
            prompt="", attachment=attachment, pages=pages, output_format="json"
        )
        await self.parser.validate(request, _PAPER)
        return request

    async def _parse(self, request: GenerationRequest) -> Result:
        """Parse a document; its pages are those of the JSON."""
        result = await self.parser.submit(request, cast(Job, _Attempt()))
        described = json.loads(cast(Output, result.outputs[0]).data)
        return attrs.evolve(result, pages=len(described["pages"]))

    async def close(self) -> None:
        """End the child processes."""
        self.pictures.close()
        await self.parser.close()


def _kind_of(path: Path) -> str | None:
    """Return "picture", a document's extension, or None for a file of neither."""
    extension = path.suffix.lower()
    if extension in PICTURE_FORMATS:
        return "picture"
    return extension if extension in (*KINDS, *PICTURES) else None


def _files(folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            kind = _kind_of(path)
            if kind is not None and path.is_file():
                yield path, kind


def _upper_bound(alarms: int, files: int) -> float:
    """Return the one-sided 95 % upper bound of a rate, after Clopper and Pearson."""
    low, high = alarms / files, 1.0
    for _ in range(40):
        rate = (low + high) / 2
        odds = (
            math.comb(files, n) * rate**n * (1 - rate) ** (files - n) for n in range(alarms + 1)
        )
        low, high = (rate, high) if sum(odds) > 1 - _SURE else (low, rate)
    return high


def _table(outcomes: Mapping[str, Sequence[str]]) -> Table:
    table = Table("kind", "files", *_ENDS, "alarms among results", "95 % below")
    for kind, ends in sorted(outcomes.items()):
        counts = [ends.count(end) for end in _ENDS]
        made, alarms = len(ends) - ends.count(_REFUSED), ends.count(_ALARM)
        rates = (alarms / made, _upper_bound(alarms, made)) if made else ()
        table.add_row(kind, str(len(ends)), *map(str, counts), *(f"{rate:.2%}" for rate in rates))
    return table


async def _run(folders: Sequence[Path], orders: Orders, most: int | None) -> None:
    console = print_head()
    ends: dict[str, list[str]] = defaultdict(list)
    for path, kind in itertools.islice(_files(folders), most):
        end, reason = await orders.end_of(path, kind)
        ends[kind].append(end)
        if end != _SOLD:
            console.print(f"{end}: {path.name[-60:]}: {reason}", highlight=False, markup=False)
    await orders.close()
    print_tables(console, [_table(ends)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--without-ocr", action="store_true", help="refuse scans, which are slow")
    parser.add_argument("--smoke", action="store_true", help="three files")
    chosen = parser.parse_args()
    reader = DocumentParser(pictures=None) if chosen.without_ocr else DocumentParser()
    asyncio.run(_run(chosen.folders, Orders(parser=reader), 3 if IS_SMOKE else None))


if __name__ == "__main__":
    main()
