"""Sessions of operators on PostgreSQL."""

from gateway_nodes.postgres.store import PostgresStore
from gateway_operator.logins import OperatorSession
from gateway_operator.sql import sessions
from gateway_testing.facts import NOW


async def test_a_login_beyond_the_most_ends_the_session_seen_longest_ago(migrated_url):
    async with PostgresStore(migrated_url) as store:
        for number in range(sessions.MAX_OPEN + 2):
            at = NOW + number
            session = OperatorSession(
                id=f"{number:064x}",
                created_at=at,
                seen_at=at,
                fresh_until=at,
                address="1.2.3.4",
                device="Firefox",
            )
            await store.write(sessions.insert, session, "password")
        found = await store.read(sessions.list_open, "password", 0.0, 0.0)
    newest_first = range(sessions.MAX_OPEN + 1, 1, -1)
    assert [int(one.id, 16) for one in found] == list(newest_first)
