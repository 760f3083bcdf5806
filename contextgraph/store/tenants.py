"""Tenants: their numbers, and the revision that grows with each change."""

from sqlite3 import Connection

UNKNOWN = 0

# What has gone is remembered for so many revisions, for processes whose projection has it still;
# those that are further behind begin anew.
REMEMBERED = 10_000


def tenant_key(connection: Connection, name: str) -> int:
    """The number of the tenant, UNKNOWN where it has nothing yet."""
    row = connection.execute("SELECT key FROM tenant WHERE name = ?", (name,)).fetchone()
    return UNKNOWN if row is None else row[0]


def new_tenant_key(connection: Connection, name: str) -> int:
    """The number of the tenant, given now if need be."""
    connection.execute(
        "INSERT INTO tenant (name, revision, removals) VALUES (?, 0, 0) ON CONFLICT DO NOTHING",
        (name,),
    )
    return tenant_key(connection, name)


def new_revision(connection: Connection, tenant: int, *, removing: bool = False) -> int:
    """The revision that the change begun makes; *removing* tells what is counted to start anew."""
    revision: int = connection.execute(
        "UPDATE tenant SET revision = revision + 1, removals = removals + ? WHERE key = ? "
        "RETURNING revision",
        (removing, tenant),
    ).fetchone()[0]
    return revision
