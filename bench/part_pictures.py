"""Pictures: checked and converted in a sandbox, and how long the event loop is blocked."""

import asyncio
import contextlib
import io
import statistics
import time
from collections.abc import AsyncIterator

import attrs
import uvloop
from PIL import Image
from place import IS_SMOKE, sized
from rich.table import Table

from gateway import Output, Result
from gateway.sandbox.pages import Pages
from gateway.sandbox.pictures import Pictures

_RUNS = sized(3, 1)  # the median is shown, because other programs delay the loop too
_SIZES = {"64": 64} if IS_SMOKE else {"64": 64, "1K": 1024, "4K": 4096}
_FORMATS = {"png": "PNG", "jpg": "JPEG", "webp": "WEBP"}
_TICK_S = 0.001


@attrs.define
class Lag:
    """How long other tasks had to wait for the event loop."""

    longest_ms: float = 0.0

    async def watch(self) -> None:
        """Request a turn every millisecond, and keep the longest delay."""
        while True:
            asked = time.perf_counter()
            await asyncio.sleep(_TICK_S)
            late_ms = (time.perf_counter() - asked - _TICK_S) * 1000
            self.longest_ms = max(self.longest_ms, late_ms)


@contextlib.asynccontextmanager
async def _lag() -> AsyncIterator[Lag]:
    lag = Lag()
    watching = asyncio.create_task(lag.watch(), name="lag")
    await asyncio.sleep(0.02)
    lag.longest_ms = 0.0
    try:
        yield lag
    finally:
        await asyncio.sleep(0.02)
        watching.cancel()


def _picture(side: int, kind: str) -> bytes:
    """Return a picture as hard to compress as a photograph."""
    noise = Image.effect_noise((side, side), 60)
    slope = Image.linear_gradient("L").resize((side, side))
    bands = [Image.blend(slope.rotate(turn), noise, 0.2) for turn in (0, 90, 180)]
    file = io.BytesIO()
    Image.merge("RGB", bands).save(file, kind)
    return file.getvalue()


async def _measured(pictures: Pictures, data: bytes, wanted: str) -> tuple[float, float]:
    """Return the milliseconds of one check, and of its longest block of the loop."""
    result = Result(outputs=(Output(data=data, media_type="image/png"),))
    async with _lag() as lag:
        began = time.perf_counter()
        kept = await pictures.check(result, wanted)
        took_ms = (time.perf_counter() - began) * 1000
    del kept  # freeing 40 MB takes 2 ms, here and wherever a task is done
    return took_ms, lag.longest_ms


async def _pictures_table() -> Table:
    pictures = Pictures()
    title = f"A picture's check and conversion, median of {_RUNS}"
    table = Table("picture", "MB", "wanted", "ms", "loop held, ms", title=title)
    await _measured(pictures, _picture(8, "PNG"), "png")  # starts the process
    for size, side in _SIZES.items():
        for made, kind in _FORMATS.items():
            data = _picture(side, kind)
            for wanted in _FORMATS:
                runs = [await _measured(pictures, data, wanted) for _ in range(_RUNS)]
                took, held = (statistics.median(column) for column in zip(*runs, strict=True))
                row = (f"{size} {made}", f"{len(data) / 10**6:.1f}", wanted)
                table.add_row(*row, f"{took:.1f}", f"{held:.1f}")
    pictures.close()
    return table


async def _pages_table() -> Table:
    from gateway.domain import Attachment
    from gateway_demo.pdf import Page, write
    from gateway_demo.sample import sample_pdf

    page = Page()
    for line in range(40):
        page.text(80, 760 - 15 * line, f"This is line {line} of a page with an ordinary sentence.")
    pages = Pages()
    table = Table("PDF", "MB", "ms", title=f"Counting pages, median of {_RUNS}")
    await pages.count(Attachment(name="a.pdf", data=sample_pdf()))
    for count in (1, 10, 100, 1000, 8000)[: sized(5, 1)]:
        file = Attachment(name="a.pdf", data=write([page] * count))
        times = []
        for _ in range(_RUNS):
            began = time.perf_counter()
            await pages.count(file)
            times.append((time.perf_counter() - began) * 1000)
        row = (f"{count:,} pages", f"{len(file.data) / 10**6:.2f}")
        table.add_row(*row, f"{statistics.median(times):.1f}")
    pages.close()
    return table


def run() -> list[Table]:
    """Measure, and return the tables."""
    return [uvloop.run(_pictures_table()), uvloop.run(_pages_table())]
