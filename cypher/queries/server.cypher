// The server, its indexes, and the migrations of its schema: of a database, not of a tenant.

// name: server
// The version and edition of the server.
CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN versions[0] AS version, edition

// name: index_names
// The names of all indexes; a constraint has one of its own name.
SHOW INDEXES YIELD name
RETURN name

// name: offline_indexes
// Indexes that are not online.
SHOW INDEXES YIELD name, state
WHERE state <> 'ONLINE'
RETURN name, state
ORDER BY name

// name: vector_indexes
// The vector indexes: their properties, dimensions and similarity function.
SHOW VECTOR INDEXES YIELD name, properties, options
RETURN name, properties, options.indexConfig['vector.dimensions'] AS dimensions,
    toUpper(options.indexConfig['vector.similarity_function']) AS similarity

// name: vector_properties
// The properties with vectors of this database: the spaces of all tenants share its indexes.
MATCH (s:Space)
RETURN DISTINCT s.property AS property ORDER BY property

// name: prepare_for_replanning
// Sample the indexes, and plan all queries again.
CALL db.prepareForReplanning($seconds)

// name: unique_migrations
// Before the first record: two processes that apply the same migration leave one.
CREATE CONSTRAINT migration_name IF NOT EXISTS
FOR (n:Migration) REQUIRE n.name IS UNIQUE

// name: applied_migrations
// The migrations that were applied, in order.
MATCH (m:Migration)
RETURN m.name AS name, m.checksum AS checksum ORDER BY name

// name: record_migration
// A migration that was applied; its first record stays.
MERGE (m:Migration {name: $name})
ON CREATE SET m.checksum = $checksum, m.applied_at = datetime()

// name: any_node
// Whether the database holds any node but the record of migrations.
RETURN EXISTS { MATCH (n) WHERE NOT n:Migration } AS any
