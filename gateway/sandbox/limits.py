"""How much of the machine one child may take."""

import attrs

# The event loop, which answers all buyers, comes before paid work, and that before unpaid work: the
# kernel gives these a third and a ninth of the processor that they compete for.
PAID_NICE = 5
UNPAID_NICE = 10


@attrs.frozen(kw_only=True)
class SandboxLimits:
    """The limits of each child of a sandbox; a child that meets one is killed.

    Files and sockets have no limit here, because a child cannot open any.
    """

    memory_bytes: int = attrs.field(default=1_500_000_000, validator=attrs.validators.gt(0))
    """Address space, of which Python and its libraries take some 100 MB. On a small machine the
    limit is half of the machine's memory, but not less than 600 MB."""

    cpu_s: int = attrs.field(default=10, validator=attrs.validators.gt(0))
    """Processor time, in whole seconds."""

    wall_s: float = attrs.field(default=25.0, validator=attrs.validators.gt(0))
    """Seconds from the fork to the answer. A busy machine needs more than twice the processor
    time."""

    children: int = attrs.field(default=2, validator=attrs.validators.gt(0))
    """Children at once; further calls wait for their turn. Checks before a payment have as many of
    their own, so that no paid call waits for them."""

    answer_bytes: int = attrs.field(default=64_000_000, validator=attrs.validators.gt(0))
    """Bytes of one answer."""

    idle_s: float = attrs.field(default=300.0, validator=attrs.validators.gt(0))
    """Seconds without a call, after which the warmed process exits and frees its memory."""

    nice: int = attrs.field(default=PAID_NICE, validator=attrs.validators.ge(0))
    """How much other work comes before; `UNPAID_NICE` for what is done before a payment."""
