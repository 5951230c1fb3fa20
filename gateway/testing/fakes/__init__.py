"""A fake API, its server and a fake chain, for tests of plugins.

The chain with a real EVM is `gateway.demo.chain`.
"""
