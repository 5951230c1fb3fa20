"""What may be wrong with a document, on either side of the process border."""

from gateway.sandbox.errors import SandboxRefusal


class Unreadable(SandboxRefusal):
    """The file cannot be parsed, however often it is tried; the message is for its owner."""
