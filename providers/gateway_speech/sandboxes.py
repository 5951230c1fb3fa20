"""The sandboxes: one for each model, whose weights stay loaded while it is used."""

from gateway.sandbox import Sandbox, SandboxLimits
from gateway_speech import weights

# A child starts with this on a machine of 1 GB.
_MEMORY_BYTES = 600_000_000
# The weights of one model; the next call loads them in a second.
_IDLE_S = 120.0
# Of each model.
CHILDREN = 1
_CHILD = "gateway_speech.child"


def speaker() -> Sandbox:
    """Return the sandbox that reads texts aloud.

    A thousand characters take 1 s of processor, as Opus 3 s, and the longest sound 60 s.
    """
    return Sandbox(
        function=f"{_CHILD}.voice:speak",
        warm=(f"{_CHILD}.voice:warm",),
        limits=SandboxLimits(
            memory_bytes=_MEMORY_BYTES, cpu_s=240, wall_s=550.0, children=CHILDREN, idle_s=_IDLE_S
        ),
    )


def listener(model: str) -> Sandbox:
    """Return the sandbox that writes speech down.

    A second of speech takes 0.05 s of processor, three times as much if it is unclear, and with the
    larger model 0.1 s.
    """
    is_large = model == weights.WHISPER_BASE
    return Sandbox(
        function=f"{_CHILD}.transcription:transcribe",
        warm=(f"{_CHILD}.transcription:{'warm_base' if is_large else 'warm'}",),
        limits=SandboxLimits(
            memory_bytes=weights.BASE_BYTES if is_large else _MEMORY_BYTES,
            cpu_s=600,
            wall_s=1_400.0,
            children=CHILDREN,
            idle_s=_IDLE_S,
        ),
    )


def cleaner() -> Sandbox:
    """Return the sandbox that removes noise: 0.07 s of processor for a second of a channel."""
    return Sandbox(
        function=f"{_CHILD}.cleanup:clean",
        warm=(f"{_CHILD}.cleanup:warm",),
        limits=SandboxLimits(
            memory_bytes=_MEMORY_BYTES, cpu_s=240, wall_s=800.0, children=CHILDREN, idle_s=_IDLE_S
        ),
    )
