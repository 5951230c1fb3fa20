"""Runs risky functions on strangers' bytes in limited child processes: pictures, page counts.

Does not belong here: what a picture or a page costs, and any code that needs a secret.

The parts, from the outside in: `sandbox` is what a caller uses. `process` starts the warmed
process, which forks one child for each call. `pieces` moves megabytes without blocking the event
loop. `frames` is the protocol between both sides. `child` is the code that runs over there.
`fair_share` gives out the slots of checks before payment; `meter` counts what they use.
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
