"""Risky work in child processes: each call gets a process of its own, small, limited, and alone.

Parts, from the outside in: `sandbox` is what a user sees; `process` keeps the warmed process that
is forked once for each call; `pieces` moves megabytes without holding up the loop; `frames` is
what both sides say to each other; `child` is what runs over there.
"""

from gateway.sandbox.errors import SandboxEnded, SandboxLost, SandboxRefusal
from gateway.sandbox.limits import SandboxLimits
from gateway.sandbox.sandbox import Sandbox

__all__ = ["Sandbox", "SandboxEnded", "SandboxLimits", "SandboxLost", "SandboxRefusal"]
