"""PostgreSQL: connections, locks and schema.

The transactions themselves are in `gateway.store`, the same for every database. Nothing here is
imported unless `GATEWAY_DATABASE_URL` is set.
"""
