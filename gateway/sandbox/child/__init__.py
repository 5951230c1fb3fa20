"""What runs in the warmed process and its children; loads nothing else of the gateway."""
