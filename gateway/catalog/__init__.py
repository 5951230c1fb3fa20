"""Endpoints on sale, and the health of their providers."""
