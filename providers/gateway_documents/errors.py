"""The error for a document that cannot be parsed, raised in the gateway and in the child."""

from gateway.sandbox.errors import SandboxRefusal

DAMAGED = "The file is damaged, or of another kind than its name says."
EMPTY = "The file is empty."
ENCRYPTED = "The file is encrypted: save it without a password."
NO_TEXT = "The file contains no text."
UNREADABLE_SCRIPT = (
    "The file contains no text that can be read: its pictures are blurred, or in another script "
    "than Latin, Chinese or Japanese."
)
TOO_DEEP = "The file is too large: its parts are nested too deeply."


class Unreadable(SandboxRefusal):
    """The file can never be parsed; the message is for the buyer."""
