"""The documents by which agents, registries and crawlers find the gateway, made from the catalogue.

`gateway.domain.description` says what an endpoint takes; these modules only arrange it.
"""
