"""Risky work in child processes: each call gets a process of its own, small, limited, and alone.

Parts, from the outside in: `calling` is what a user sees; `running` keeps the warmed process that
is forked once for each call; `pieces` moves megabytes without holding up the loop; `frames` is
what both sides say to each other; `child` is what runs over there.
"""

from gateway.sandbox.calling import Sandbox
from gateway.sandbox.errors import SandboxEnded, SandboxLost, SandboxRefusal
from gateway.sandbox.limits import SandboxLimits

__all__ = ["Sandbox", "SandboxEnded", "SandboxLimits", "SandboxLost", "SandboxRefusal"]
