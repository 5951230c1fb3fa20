"""A fake vendor API, its server and a fake chain, shared by several contracts.

The chain with a real EVM is `gateway_demo.chain`.
"""
