"""The code that runs in the sandboxed processes; it imports only `gateway.sandbox`."""

MAX_PAGES = 1000
"""A file of more pages is refused, also after payment."""
