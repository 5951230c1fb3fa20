"""The error for a document that cannot be parsed, raised in the gateway and in the child."""

from gateway.sandbox.errors import SandboxRefusal


class Unreadable(SandboxRefusal):
    """The file can never be parsed; the message is for the buyer."""
