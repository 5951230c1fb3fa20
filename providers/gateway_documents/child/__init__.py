"""What runs in the nursery process and its children; knows nothing of the gateway."""
