"""What only PostgreSQL has: its connections, who waits for whom, and its schema.

What the transactions write is in `gateway.store`, and the same on every database. Nothing here is
imported unless `GATEWAY_DATABASE_URL` is set.
"""
