// What the server is, and whether it has the schema.

// name: server
// The version and edition of the server.
CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN versions[0] AS version, edition

// name: schema_is_there
// Whether the last index of the schema exists.
SHOW INDEXES YIELD name
WHERE name = 'recovered_words'
RETURN count(*) > 0 AS there

// name: await_indexes
// Wait until all indexes answer.
CALL db.awaitIndexes($seconds)
