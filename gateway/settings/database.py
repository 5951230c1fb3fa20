"""Settings of the database: the data folder's SQLite, or a PostgreSQL that nodes share."""

import attrs

from gateway.settings.sections import setting

ROLES = frozenset(("web", "worker", "signer"))


# Classes with slots cannot be bases of one class.
@attrs.frozen(kw_only=True, slots=False)
class DatabaseSettings:
    """Settings of the database and the roles of machines."""

    # It holds a password, so it is not shown.
    database_url: str = setting(
        "",
        "PostgreSQL shared by all machines, at a direct or session-pooled address. Empty: "
        "SQLite in the data folder. Needs the extra `postgres` (in the image) and "
        "GATEWAY_OUTPUTS_URL.",
        example="postgresql://gateway:password@db.example.com/gateway",
        shown=False,
    )
    database_connections: int = setting(
        8,
        "Most database connections of a machine; it opens two more. Keep the total below the "
        "server's max_connections.",
    )
    node: str = setting(
        "",
        "Unique name of this machine among those that share a database. Empty: "
        "FLY_MACHINE_ID, else the host name.",
        example="a",
    )
    role: str = setting(
        "all",
        "Work of this machine, separated by commas: `web` sells, `worker` runs tasks, "
        "`signer` may lead (refunds, webhooks, retention), `all`. Each is needed on some "
        "machine.",
        example="web,signer",
    )

    @property
    def roles(self) -> frozenset[str]:
        """The roles of this machine, of `ROLES`."""
        chosen = frozenset(word.strip() for word in self.role.split(","))
        return ROLES if "all" in chosen else chosen
