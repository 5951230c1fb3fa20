"""The two sandboxes: one reads text out of files, the other out of pictures."""

import importlib.util
import os

from gateway.sandbox import Sandbox, SandboxLimits

_OCR_LIBRARIES = ("rapidocr", "onnxruntime", "pypdfium2")


def text_reader() -> Sandbox:
    """Return the sandbox in which files are parsed: 0.4 s for a normal one, 60 MB at rest."""
    libraries = "gateway_documents.child.libraries"
    return Sandbox(
        function="gateway_documents.child.work:work",
        warm=(
            f"{libraries}:leave_out_what_is_not_needed",  # before the parsers ask for it
            "gateway_documents.child.work",
            f"{libraries}:load_the_rest",
        ),
        limits=SandboxLimits(
            memory_bytes=1_500_000_000,
            cpu_s=10,
            wall_s=25.0,
            children=2,  # two hostile ones may take 1 GB each; the others wait their turn
        ),
    )


def picture_reader() -> Sandbox | None:
    """Return the sandbox in which pictures are read, or None where the OCR extra is missing."""
    if any(importlib.util.find_spec(name) is None for name in _OCR_LIBRARIES):
        return None
    recognition = "gateway_documents.child.recognition"
    return Sandbox(
        function=f"{recognition}:recognise",
        warm=(f"{recognition}:load_models",),
        limits=SandboxLimits(
            memory_bytes=1_500_000_000,  # a page takes 0.7, the largest picture 1.2
            cpu_s=90,  # a page takes 3 to 5
            wall_s=180.0,
            children=max(1, (os.cpu_count() or 1) // 2),  # the gateway needs a processor, too
            idle_s=120.0,  # it holds 200 MB
        ),
    )
