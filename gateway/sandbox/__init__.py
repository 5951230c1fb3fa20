"""Runs risky functions on untrusted bytes in confined child processes.

`sandbox` is the entry point. `process` starts the warmed process, which forks a child for each
call. `pieces` transfers megabytes without blocking the event loop. `frames` is the protocol between
both sides, and `child` the code on the other side. `fair_share` schedules checks before payment;
`meter` measures their CPU time.

Code that needs a secret must never run here.
"""

from gateway.sandbox.errors import SandboxEnded, SandboxLost, SandboxRefusal
from gateway.sandbox.limits import UNPAID_NICE, SandboxLimits
from gateway.sandbox.sandbox import Sandbox

__all__ = [
    "UNPAID_NICE",
    "Sandbox",
    "SandboxEnded",
    "SandboxLimits",
    "SandboxLost",
    "SandboxRefusal",
]
