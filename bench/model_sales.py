"""Sells to itself: the plugins' providers with their sandboxes, and the cost of each sale."""

import inspect
import io
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
from PIL import Image

import gateway
from gateway.sandbox import memory_budget
from gateway.sandbox.memory_budget import MemoryBudget
from gateway.sandbox.memory_reservation import Reservation
from gateway.sandbox.process import Usage

# Enough for the larger models, and the budget on a machine of 1 GB.
_LARGE_BYTES, _SMALL_BYTES = 2_000_000_000, 600_000_000


@attrs.define(eq=False)
class _Watch(MemoryBudget):
    """Also notes the usage of the last child."""

    last: Usage | None = None

    def note_end(self, reservation: Reservation, usage: Usage | None) -> None:
        """Note the memory that a child took."""
        super().note_end(reservation, usage)
        self.last = usage


# Before the plugins are imported, which take the budget from here.
_WATCH = memory_budget.SHARED = _Watch()


@attrs.define
class Spent:
    """CPU seconds of the calls so far, and the most memory that one of them had."""

    cpu_s: float = 0.0
    peak_bytes: int = 0
    calls: int = 0

    def add(self, cpu_s: float, peak_bytes: int) -> None:
        """Count a call."""
        self.cpu_s += cpu_s
        self.peak_bytes = max(self.peak_bytes, peak_bytes)
        self.calls += 1

    @property
    def peak(self) -> str:
        """The memory in MB."""
        return f"{self.peak_bytes / 10**6:.0f}"


@attrs.frozen
class _Job:
    """Takes the reports of progress."""

    endpoint: gateway.Endpoint

    async def progress(self, fraction: float, note: str = "") -> None:
        """Ignore it."""


@attrs.define
class Seller:
    """An endpoint and its provider."""

    endpoint: gateway.Endpoint
    provider: Any
    spent: Spent = attrs.field(factory=Spent)

    async def sell(self, **request: Any) -> bytes:
        """Check an order and carry it out; return the result, empty if it is refused."""
        order = gateway.GenerationRequest(**request)
        try:
            if check := getattr(self.provider, "validate", None):
                checked = check(order, self.endpoint)
                if inspect.isawaitable(checked):
                    await checked
            result = await self.provider.submit(order, _Job(self.endpoint))
        except gateway.InvalidInput as error:
            print(f"{self.endpoint.slug} refuses: {error}")
            return b""
        finally:
            if _WATCH.last is not None:
                self.spent.add(_WATCH.last.cpu_s, _WATCH.last.peak_bytes)
                _WATCH.last = None
        return result.text.encode() if result.text else result.outputs[0].data

    async def sell_picture(self, image: Image.Image, kind: str = "PNG", **request: Any) -> bytes:
        """Sell something made of a picture."""
        file = gateway.Attachment(name=f"a.{kind.lower()}", data=encoded(image, kind))
        return await self.sell(attachment=file, **request)

    async def sell_sound(self, data: bytes, **request: Any) -> bytes:
        """Sell something made of a sound."""
        file = gateway.Attachment(name=f"a.{sound_kind(data)}", data=data)
        return await self.sell(attachment=file, **request)


def encoded(image: Image.Image, kind: str = "PNG", quality: int = 90) -> bytes:
    """Return a picture's file."""
    file = io.BytesIO()
    image.save(file, kind, quality=quality)
    return file.getvalue()


def sound_kind(data: bytes) -> str:
    """Return the extension of a sound; the decoder looks at the data alone."""
    return "wav" if data.startswith(b"RIFF") else "flac" if data.startswith(b"fLaC") else "mp3"


def why_off() -> str:
    """Return how to install the models, if they are not."""
    import gateway_pictures
    import gateway_speech

    return gateway_pictures.why_off() or gateway_speech.why_off()


@asynccontextmanager
async def closing(*sellers: Seller) -> AsyncIterator[None]:
    """End the processes after the block."""
    try:
        yield
    finally:
        for seller in sellers:
            await seller.provider.close()


def cutters() -> Iterator[Seller]:
    """Yield the small model that cuts out, and the larger one if it is installed."""
    from gateway_pictures import CUT_OUT
    from gateway_pictures.provider import Cutter

    for provider in _of_both_sizes(Cutter, lambda made: made.describe(CUT_OUT).model):
        yield Seller(provider.describe(CUT_OUT), provider)


def listeners() -> Iterator[Seller]:
    """Yield the small model that writes down speech, and the larger one if it is installed."""
    from gateway_speech import TRANSCRIBE
    from gateway_speech.provider import Listener

    for provider in _of_both_sizes(Listener, lambda made: made.model):
        yield Seller(attrs.evolve(TRANSCRIBE, model=provider.model), provider)


def _of_both_sizes(make: Callable[[], Any], model_of: Callable[[Any], str]) -> list[Any]:
    """Return the providers that a small and a large machine have, if their models differ."""
    made: dict[str, Any] = {}
    for size in (_SMALL_BYTES, _LARGE_BYTES):
        _WATCH.resize(size)
        provider = make()
        made.setdefault(model_of(provider), provider)
    _WATCH.resize(0)
    return list(made.values())


def enlarger(slug: str) -> Seller:
    """Return the seller of `image-upscaling` or `image-repair`."""
    from gateway_pictures import ENLARGE, REPAIR
    from gateway_pictures.provider import Enlarger

    return Seller({one.slug: one for one in (ENLARGE, REPAIR)}[slug], Enlarger())


def speaker() -> Seller:
    """Return the seller of `text-to-speech`."""
    from gateway_speech import SPEAK
    from gateway_speech.provider import Speaker

    return Seller(SPEAK, Speaker())


def cleaner() -> Seller:
    """Return the seller of `speech-cleanup`."""
    from gateway_speech import CLEAN
    from gateway_speech.provider import Cleaner

    return Seller(CLEAN, Cleaner())
