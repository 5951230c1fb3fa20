"""The larger weights of generation-gateway-models, which has their sources and licences."""
