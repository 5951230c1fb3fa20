"""What runs in the sandboxed processes; knows nothing of the gateway but its sandbox."""
