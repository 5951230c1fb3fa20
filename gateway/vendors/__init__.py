"""The HTTP client that providers are given, and where it may go."""

from gateway.vendors.answer import Answer
from gateway.vendors.base_url import base_url
from gateway.vendors.client import Outbound

__all__ = ["Answer", "Outbound", "base_url"]
