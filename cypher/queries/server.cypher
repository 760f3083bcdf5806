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

// name: schema_number
// The number of the schema, null where none is recorded; and whether there is any node.
OPTIONAL MATCH (s:Schema)
RETURN max(s.number) AS number, EXISTS { MATCH () } AS any

// name: record_schema
// The number of the schema, once all of it is there.
MERGE (s:Schema {name: 'memory'})
SET s.number = $number
