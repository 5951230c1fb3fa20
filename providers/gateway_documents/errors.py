"""The error for a document that cannot be parsed, raised in the gateway and in the child."""

from gateway.sandbox.errors import SandboxRefusal

# Every sentence for a buyer contains one of these, and only one.
REASONS = ("empty", "encrypted", "damaged", "unknown", "too large", "too slow", "no text")
DAMAGED = "The file is damaged, or of another kind than its name says."
EMPTY = "The file is empty."
ENCRYPTED = "The file is encrypted: save it without a password."
NO_TEXT = "The file contains no text."
UNREADABLE_SCRIPT = (
    "The file contains no text that can be read: its pictures have none, are blurred, or are in "
    "another script than Latin, Chinese or Japanese."
)
TOO_DEEP = "The file is too large: its parts are nested too deeply."


class Unreadable(SandboxRefusal):
    """Raised for a file that can never be parsed; the message is for the buyer."""
