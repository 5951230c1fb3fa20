"""HTTP: server, routes, the JSON of the specification, limits and the admin password.

Decisions about money are in `gateway.payments`.
"""
