"""Code of the warmed process and its children; it loads nothing else of the gateway."""
