// The record of what was applied to the schema; of a database, not of a tenant.

// name: unique_migrations
// Before the first record: two processes that apply the same step leave one.
CREATE CONSTRAINT migration_name IF NOT EXISTS
FOR (n:Migration) REQUIRE n.name IS UNIQUE

// name: applied_migrations
// What was applied, in order.
MATCH (m:Migration)
RETURN m.name AS name, m.checksum AS checksum ORDER BY name

// name: record_migration
// A step that was applied; the first record of it stays.
MERGE (m:Migration {name: $name})
ON CREATE SET m.checksum = $checksum, m.applied_at = datetime()

// name: any_node
// Whether the database holds anything.
RETURN EXISTS { MATCH (n) } AS any
