"""The listening socket and the HTTP server on it."""
