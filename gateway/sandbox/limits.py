"""How much of the machine one child may take."""

import attrs


@attrs.frozen(kw_only=True)
class SandboxLimits:
    """The limits of each child of a sandbox; whoever meets one is killed.

    Files, sockets and whatever else is opened have no number: a child can open nothing at all.
    """

    memory_bytes: int = attrs.field(default=1_500_000_000, validator=attrs.validators.gt(0))
    """Of address space, of which Python and its libraries take some 100 MB. On a small machine it
    is half of the machine's memory, but not less than 600 MB."""

    cpu_s: int = attrs.field(default=10, validator=attrs.validators.gt(0))
    """Of processor time, whole seconds."""

    wall_s: float = attrs.field(default=25.0, validator=attrs.validators.gt(0))
    """From the fork to the answer; for a busy machine, twice the processor time and some."""

    children: int = attrs.field(default=2, validator=attrs.validators.gt(0))
    """At once; further calls wait for their turn."""

    answer_bytes: int = attrs.field(default=64_000_000, validator=attrs.validators.gt(0))
    """Of one answer."""

    idle_s: float = attrs.field(default=300.0, validator=attrs.validators.gt(0))
    """Without a call, after which the warmed process leaves and gives its memory back."""
