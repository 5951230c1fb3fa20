"""Base: JSON-RPC with fail-over, signatures, smart wallets, the gateway's keys and what they send.

What a payment means is decided in `gateway.payments`.
"""
