"""Converters of weights: each module has `convert(*sources: bytes) -> bytes`."""
