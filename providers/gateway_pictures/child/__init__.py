"""Runs inside the sandboxes, without the gateway."""
