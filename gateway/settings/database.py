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
        "PostgreSQL that all machines of this gateway share. Empty: SQLite in the data folder, "
        "which one machine has for itself. It needs the extra `postgres` (it is in the image) "
        "and GATEWAY_OUTPUTS_URL, because every machine reads the outputs. The address is a direct "
        "one, or of a pooler in session mode. `gateway migrate-store` moves the data folder's "
        "database there.",
        example="postgresql://gateway:password@db.example.com/gateway",
        shown=False,
    )
    database_connections: int = setting(
        8,
        "Connections to that database that a machine opens at most for sales and work. It keeps "
        "two more, one to hear the others and one for operators' sums, and a command that runs "
        "beside it has its own. All together stay below the server's max_connections.",
    )
    node: str = setting(
        "",
        "Name of this machine among those that share a database. Empty: FLY_MACHINE_ID, else the "
        "host's name. Two machines never have one name.",
        example="a",
    )
    role: str = setting(
        "all",
        "What this machine does among those that share a database, several by comma: `web` sells "
        "and answers buyers, `worker` makes what was sold, `signer` may lead and so also looks "
        "after refunds, webhooks and what is left over. `all` does everything. Each of the three "
        "is to run somewhere; `gateway nodes` shows which does not.",
        example="web,signer",
    )

    @property
    def roles(self) -> frozenset[str]:
        """The roles of this machine, of `ROLES`."""
        chosen = frozenset(word.strip() for word in self.role.split(","))
        return ROLES if "all" in chosen else chosen
