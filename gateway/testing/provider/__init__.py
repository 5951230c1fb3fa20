"""The contract of a provider as tests: scenes around a real gateway and a fake API.

Fakes that other contracts use as well are in `gateway.testing.fakes`.
"""
