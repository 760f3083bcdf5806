// What the server is.

// name: server
// The version and edition of the server.
CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN versions[0] AS version, edition

// name: await_indexes
// Wait until all indexes answer.
CALL db.awaitIndexes($seconds)

// name: index_names
// The indexes there are; a constraint has one of its own name.
SHOW INDEXES YIELD name
RETURN name

// name: ill_indexes
// Indexes that do not answer.
SHOW INDEXES YIELD name, state
WHERE state <> 'ONLINE'
RETURN name, state
ORDER BY name

// name: stray_nodes
// Runs that cannot be read again, and fragments without a run.
CALL () {
    MATCH (t:Trajectory {tenant: $tenant})
    WHERE t.id IS NOT NULL AND NOT EXISTS { (t)-[:HAS_RAW_RUN]->() }
    RETURN count(t) AS runs
}
CALL () {
    MATCH (f:Fragment {tenant: $tenant})
    WHERE f.id IS NOT NULL AND NOT EXISTS { (f)<-[:HAS_FRAGMENT]-() }
    RETURN count(f) AS fragments
}
RETURN runs + fragments AS count

// name: vector_indexes
// For how many dimensions, and for which likeness, each of them was made; what it is made of.
SHOW VECTOR INDEXES YIELD name, properties, options
RETURN name, properties, options.indexConfig['vector.dimensions'] AS dimensions,
    toUpper(options.indexConfig['vector.similarity_function']) AS similarity

// name: vector_properties
// Where nodes of this database hold vectors: those of all tenants share its indexes.
MATCH (s:Space)
RETURN DISTINCT s.property AS property ORDER BY property

// name: plan_anew
// Count what indexes hold now, and plan all queries by that from now on.
CALL db.prepareForReplanning($seconds)
