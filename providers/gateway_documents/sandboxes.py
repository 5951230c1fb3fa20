"""The sandboxes: one checks files before payment, one parses them, one reads text in pictures."""

import importlib.util
import os

from gateway.sandbox import UNPAID_NICE, Sandbox, SandboxLimits

_OCR_LIBRARIES = ("rapidocr", "onnxruntime", "pypdfium2")


def text_reader() -> Sandbox:
    """Return the sandbox that parses files: 0.4 s for a normal file, 60 MB when idle."""
    libraries = "gateway_documents.child.libraries"
    return Sandbox(
        function="gateway_documents.child.work:work",
        warm=(
            # This must precede the imports of the parsers.
            f"{libraries}:leave_out_heavy_libraries",
            "gateway_documents.child.work",
            f"{libraries}:load_lazy_parts",
        ),
        limits=SandboxLimits(
            memory_bytes=1_500_000_000,
            cpu_s=10,
            wall_s=25.0,
            # Two hostile files may take 1 GB each; other files wait.
            children=2,
        ),
    )


def checker() -> Sandbox:
    """Return the sandbox that checks PDFs before payment, so that paid files never wait for it.

    It takes 20 MB when idle.
    """
    return Sandbox(
        function="gateway_documents.child.pages:check",
        limits=SandboxLimits(
            memory_bytes=600_000_000, cpu_s=10, wall_s=25.0, children=2, nice=UNPAID_NICE
        ),
    )


def picture_reader() -> Sandbox | None:
    """Return the sandbox that reads pictures; None if the OCR extra is missing."""
    if any(importlib.util.find_spec(name) is None for name in _OCR_LIBRARIES):
        return None
    recognition = "gateway_documents.child.recognition"
    return Sandbox(
        function=f"{recognition}:recognise",
        warm=(f"{recognition}:load_models",),
        limits=SandboxLimits(
            # A page takes 0.7 GB, the largest picture 1.2 GB.
            memory_bytes=1_500_000_000,
            # A page takes 3 to 5 s.
            cpu_s=90,
            wall_s=180.0,
            # Leave CPU time for the gateway.
            children=max(1, (os.cpu_count() or 1) // 2),
            # The process holds 200 MB.
            idle_s=120.0,
        ),
    )
