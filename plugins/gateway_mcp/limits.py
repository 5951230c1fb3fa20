"""Limits of a message, in bytes."""

# A prompt of 10,000 escaped characters, and a payment of 32 KiB in Base64.
MESSAGE_BYTES = 256 * 1024
# A file of 7.5 MB in Base64, and a prompt.
FILE_MESSAGE_BYTES = 11_000_000
