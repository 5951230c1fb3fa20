"""Base: JSON-RPC with failover, signatures, smart wallets, keys and transactions.

Payment decisions are made in `gateway.payments`.
"""
