"""Base: JSON-RPC with fail-over, signatures, smart wallets, our keys and what they send.

What a payment means is in `gateway.payments`.
"""
