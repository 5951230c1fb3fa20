"""Reads untrusted sounds and videos; runs in a child process, see `gateway.Sandbox`."""
