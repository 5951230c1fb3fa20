"""The HTTP client that providers are given, and where it may go."""

from gateway.outbound.answer import Answer
from gateway.outbound.base_url import base_url
from gateway.outbound.client import Outbound

__all__ = ["Answer", "Outbound", "base_url"]
