"""Plain text and its character sets."""
