"""The sandboxes, and the choice of the model that cuts out."""

import os
from typing import NamedTuple

from generation_gateway_models import weights

from gateway.sandbox import UNPAID_NICE, Sandbox, SandboxLimits
from gateway.sandbox.memory_budget import SHARED

_CHILD = "gateway_pictures.child"
# A child's memory on a machine of 1 GB.
_SMALL_BYTES = 600_000_000
# ISNet takes 0.5 GB in its warmed process, and 0.9 GB of address space.
_LARGE_BYTES = 1_100_000_000
# Orders of one provider at once: the gateway needs a processor, too.
CHILDREN = max(1, (os.cpu_count() or 1) // 2)


class Chosen(NamedTuple):
    """The model that cuts out: its name, its sandbox, and the reason for the operator."""

    model: str
    sandbox: Sandbox
    note: str


def cutter() -> Chosen:
    """Return the larger model if its weights are installed and the memory suffices."""
    has_memory = SHARED.total_bytes >= _LARGE_BYTES
    if has_memory and _has("isnet.onnx"):
        limits = _limits(cpu_s=60, memory_bytes=_LARGE_BYTES)
        note = "background-removal runs ISNet, because the memory suffices"
        return Chosen("isnet", _sandbox("cutting:cut_out", "cutting:load_isnet", limits), note)
    missing = "the extra models-large" if has_memory else "1.1 GB of GATEWAY_SANDBOX_MEMORY_MB"
    note = f"background-removal runs U²-Net p; the larger ISNet needs {missing}"
    sandbox = _sandbox("cutting:cut_out", "cutting:load_u2net", _limits(cpu_s=60))
    return Chosen("u2net-p", sandbox, note)


def enlarger() -> Sandbox:
    """Return the sandbox that enlarges and repairs."""
    # The largest picture takes 90 s.
    return _sandbox("enlarging:enlarge", "enlarging:load", _limits(cpu_s=300))


def scorer() -> Sandbox:
    """Return the sandbox of the NSFW classifier, which also works before payment."""
    limits = SandboxLimits(memory_bytes=_SMALL_BYTES, cpu_s=10, nice=UNPAID_NICE)
    return _sandbox("scoring:score", "scoring:load", limits)


def _has(name: str) -> bool:
    try:
        weights(name)
    except LookupError:
        return False
    return True


def _limits(*, cpu_s: int, memory_bytes: int = _SMALL_BYTES) -> SandboxLimits:
    return SandboxLimits(
        memory_bytes=memory_bytes,
        cpu_s=cpu_s,
        wall_s=cpu_s * 2.0,
        children=CHILDREN,
        answer_bytes=64_000_000,
        idle_s=120.0,
    )


def _sandbox(function: str, load: str, limits: SandboxLimits) -> Sandbox:
    return Sandbox(function=f"{_CHILD}.{function}", warm=(f"{_CHILD}.{load}",), limits=limits)
