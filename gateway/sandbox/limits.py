"""Resource limits of a sandbox's children."""

import attrs

# The event loop comes before paid work, and paid work before unpaid work. Under contention, the
# kernel gives these a third and a ninth of the CPU time.
PAID_NICE = 5
UNPAID_NICE = 10


@attrs.frozen(kw_only=True)
class SandboxLimits:
    """The limits of each child of a sandbox. A child that exceeds one is killed.

    Files and sockets have no limit here, because a child cannot open any.
    """

    memory_bytes: int = attrs.field(default=1_500_000_000, validator=attrs.validators.gt(0))
    """Address space, of which Python and its libraries take some 100 MB. On a small machine the
    limit is lower, but at least 600 MB: what a child adds to its warmed process stays within the
    memory that the gateway's own process leaves."""

    cpu_s: int = attrs.field(default=10, validator=attrs.validators.gt(0))
    """CPU time, in whole seconds."""

    wall_s: float = attrs.field(default=25.0, validator=attrs.validators.gt(0))
    """Seconds from the fork to the result. A busy machine needs more than twice the CPU time."""

    children: int = attrs.field(default=2, validator=attrs.validators.gt(0))
    """Concurrent children; further calls wait. Checks before a payment have the same number of
    children of their own, so that no paid call waits for them."""

    answer_bytes: int = attrs.field(default=64_000_000, validator=attrs.validators.gt(0))
    """The maximum size of a result."""

    idle_s: float = attrs.field(default=300.0, validator=attrs.validators.gt(0))
    """Seconds without a call, after which the warmed process exits and frees its memory; at most 30
    if all sandboxes together may take less than 500 MB."""

    nice: int = attrs.field(default=PAID_NICE, validator=attrs.validators.ge(0))
    """The niceness of the children; before a payment it is `UNPAID_NICE` or more."""

    unpaid_memory_bytes: int | None = None
    unpaid_cpu_s: int | None = None
    """Lower limits of a call before a payment. So a file that passes such a check is within the
    limits after payment. None: the same."""

    def before_payment(self) -> "SandboxLimits":
        """Return the limits of a call before a payment."""
        return attrs.evolve(
            self,
            memory_bytes=self.unpaid_memory_bytes or self.memory_bytes,
            cpu_s=self.unpaid_cpu_s or self.cpu_s,
            nice=max(self.nice, UNPAID_NICE),
        )
