"""A fake vendor's API, its server and a fake chain, which several contracts use.

The chain with a real EVM is `gateway_demo.chain`.
"""
