"""The rows of `gateway check` about the processes that read untrusted files."""

from gateway.sandbox import Sandbox, SandboxEnded, SandboxLost
from gateway.sandbox.child.machine import find_budget_bytes
from gateway.settings import Settings, variable
from gateway_check.rows import Note

_CONFINED = "files are parsed in child processes with resource limits and a seccomp filter"
_LIMITED_ONLY = (
    "files are parsed in child processes with resource limits only: the seccomp filter needs Linux "
    "on x86-64 or aarch64"
)


async def check_confinement() -> str:
    """Report how a child process that parses untrusted files is confined."""
    sandbox = Sandbox(function="gateway.sandbox.child.seccomp:report")
    try:
        confinement = await sandbox.call()
    except (SandboxEnded, SandboxLost) as error:
        raise ValueError(f"files cannot be parsed: {error}") from None
    finally:
        sandbox.close()
    return _CONFINED if confinement == b"filtered" else Note(_LIMITED_ONLY)


async def check_memory(settings: Settings) -> str:
    """Report the memory that all these processes share."""
    own_mb, found_mb = settings.sandbox_memory_mb, find_budget_bytes() / 10**6
    by = variable("sandbox_memory_mb") if own_mb else "this machine's memory"
    shared = f"{own_mb or found_mb:,.0f} MB for all processes that read files, by {by}"
    if own_mb > found_mb:
        return Note(f"{shared}; this machine has {found_mb:,.0f} MB for them")
    return shared
