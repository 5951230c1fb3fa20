"""A running gateway: its parts, their order, and whether it may sell."""
