"""The provider contract as tests, which run a real gateway against a fake API.

Fakes that other contracts share are in `gateway_testing.fakes`.
"""
