"""Base: JSON-RPC with fail-over, signatures, smart wallets, keys and their transactions.

Decisions about payments are made in `gateway.payments`.
"""
