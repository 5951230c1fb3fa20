"""The code that runs in the sandboxed processes; it imports only `gateway.sandbox`."""
