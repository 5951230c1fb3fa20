"""The sandboxes: one parses files, one reads text in pictures, both also before payment."""

import importlib.util
import os

from gateway.sandbox import Sandbox, SandboxLimits

_OCR_LIBRARIES = ("rapidocr", "onnxruntime", "pypdfium2")
_LIMITS = SandboxLimits(
    # With 1.25 GB, PDFium reserves 1 GiB of it as a pool, which leaves too little for the rest.
    memory_bytes=1_150_000_000,
    # A PDF of 600 dense pages takes 8 s.
    cpu_s=15,
    unpaid_memory_bytes=1_050_000_000,
    unpaid_cpu_s=11,
    wall_s=40.0,
    # 16 MB of quotes have twice the size in JSON, once as Markdown and once as cells. A million
    # cells add 4 MB more, and text in pictures little.
    answer_bytes=80_000_000,
    # Two hostile files may take 1 GB each; other files wait.
    children=2,
)


def text_reader() -> Sandbox:
    """Return the sandbox that parses files, and checks them before payment."""
    return Sandbox(
        function="gateway_documents.child.work:work",
        warm=("gateway_documents.child.libraries:load_lazy_parts",),
        limits=_LIMITS,
    )


def picture_reader() -> Sandbox | None:
    """Return the sandbox that reads pictures; None if the OCR extra is missing."""
    if any(importlib.util.find_spec(name) is None for name in _OCR_LIBRARIES):
        return None
    recognition = "gateway_documents.child.scans.recognition"
    return Sandbox(
        function=f"{recognition}:recognise",
        warm=(f"{recognition}:load_models",),
        limits=SandboxLimits(
            # A page takes 0.7 GB, the largest picture 1.2 GB.
            memory_bytes=1_500_000_000,
            # A page takes 3 to 5 s.
            cpu_s=90,
            unpaid_cpu_s=12,
            wall_s=180.0,
            # The gateway needs a processor, too.
            children=max(1, (os.cpu_count() or 1) // 2),
            # The process holds 200 MB.
            idle_s=120.0,
        ),
    )
