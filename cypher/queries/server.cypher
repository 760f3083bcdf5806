// What the server is.

// name: server
// The version and edition of the server.
CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN versions[0] AS version, edition

// name: await_indexes
// Wait until all indexes answer.
CALL db.awaitIndexes($seconds)
