"""Chooses among the weights that the extra `models` installs."""

from pathlib import Path

WHISPER_TINY, WHISPER_BASE = "whisper-tiny.en", "whisper-base"
# The memory of a child of the larger model, and the memory of all children of the gateway for it.
BASE_BYTES = 800_000_000
_BASE_BUDGET_BYTES = 1_100_000_000


def path_of(name: str) -> Path:
    """Return the folder of a model's weights; raises `LookupError` if it is not installed."""
    from generation_gateway_models import weights  # noqa: PLC0415 - of the extra

    return weights(name)


def is_installed(name: str = WHISPER_TINY) -> bool:
    """Whether the weights of a model are installed."""
    try:
        path_of(name)
    except LookupError:
        return False
    return True


def choose(budget_bytes: int, *, has_base: bool) -> tuple[str, str]:
    """Return the Whisper model for the sandboxes' memory, and the reason for the operator."""
    if budget_bytes < _BASE_BUDGET_BYTES:
        missing = f"{_BASE_BUDGET_BYTES / 10**9:g} GB of GATEWAY_SANDBOX_MEMORY_MB"
    elif not has_base:
        missing = "its weights"
    else:
        return WHISPER_BASE, "speech-to-text runs Whisper base, because the memory suffices"
    return WHISPER_TINY, f"speech-to-text runs Whisper tiny.en; the larger base needs {missing}"
