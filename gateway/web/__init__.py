"""HTTP: server, routes, the JSON of the specification, limits and the admin password.

Decisions about money belong in `gateway.payments`.
"""
