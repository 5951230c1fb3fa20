"""Runs risky functions on untrusted bytes in confined child processes.

`sandbox` is the entry point, and measures CPU time. `process` starts the warmed process, which
forks a child for each call, and transfers arguments and results. `child` is the code on the other
side; `child.work` defines the wire protocol. `memory_budget` admits children as memory allows, and
`fair_share` schedules checks before payment.

Code that needs a secret must never run here.
"""

from gateway.sandbox.errors import SandboxBroken, SandboxEnded, SandboxLost, SandboxRefusal
from gateway.sandbox.limits import UNPAID_NICE, SandboxLimits
from gateway.sandbox.sandbox import Sandbox

__all__ = [
    "UNPAID_NICE",
    "Sandbox",
    "SandboxBroken",
    "SandboxEnded",
    "SandboxLimits",
    "SandboxLost",
    "SandboxRefusal",
]
