"""A function for the sandbox that tells how its child is confined."""

from gateway.sandbox.child import seccomp


def tell() -> bytes:
    """Return `filtered` where the kernel filters this child's system calls, else `limited`."""
    return b"filtered" if seccomp.is_installed() else b"limited"
