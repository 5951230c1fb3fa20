"""The error for a document that cannot be parsed, raised in the gateway and in the child."""

from gateway.sandbox.errors import SandboxRefusal

DAMAGED = "The file cannot be parsed: it is damaged, or not what it says it is."
NO_TEXT = "The file holds no text."


class Unreadable(SandboxRefusal):
    """The file can never be parsed; the message is for the buyer."""
