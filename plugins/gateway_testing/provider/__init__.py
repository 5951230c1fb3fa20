"""The contract of a provider as tests, which run a real gateway against a fake API.

Fakes that other contracts use as well are in `gateway_testing.fakes`.
"""
