"""The drawing itself; runs in a child process and knows nothing of the gateway."""
