// A memory as another store takes it.

// name: archived_run
// A run, what it met in its own words, and what is between its fragments and errors.
MATCH (t:Trajectory {tenant: $tenant, id: $id})
RETURN
    COLLECT {
        MATCH (t)-[m:MET]->(e:ErrorPattern)
        RETURN {id: e.id, family: e.family, error_type: e.error_type, template: e.template,
            keywords: m.keywords, context: m.context, steps: m.steps}
    } AS errors,
    COLLECT {
        MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)-[c:CAUSED_ERROR]->(e:ErrorPattern)
        RETURN [f.id, e.id, c.steps, c.locations] ORDER BY f.order, f.id, e.id
    } AS caused,
    COLLECT {
        MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
        RETURN [f.id, e.id, r {.error_step, .cleared_step, .message, .location, .what, .actions,
            .verified, .workaround}]
        ORDER BY r.error_step, f.id, e.id
    } AS recovered

// name: vectors_of_run
// The vectors of a run and of its fragments in a space, where it is embedded.
MATCH (t:Trajectory {tenant: $tenant, id: $id})
WHERE $property IN t.embedded
RETURN t[$property] AS trajectory, COLLECT {
    MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
    RETURN f[$property] ORDER BY f.order, f.id
} AS fragments

// name: methodology_vectors
// The vectors in a space of methodologies that are embedded; none for texts that have none.
UNWIND $ids AS id
MATCH (m:Methodology {tenant: $tenant, id: id})
WHERE $property IN m.embedded
RETURN id, m[$property] AS vector
ORDER BY id

// name: set_met_steps
// At how many steps runs met errors, also in fragments that were pruned.
UNWIND $rows AS row
CALL (row) {
    MATCH (:Trajectory {tenant: $tenant, id: row.trajectory_id})-[m:MET]->(e:ErrorPattern)
    WHERE e.id = row.error_id
    SET m.steps = row.steps
}

// name: similar_of_run
MATCH (:Trajectory {tenant: $tenant, id: $id})-[:HAS_FRAGMENT]->(f:Fragment)
    -[s:SIMILAR_TO]->(r:Fragment)
RETURN s.error_id AS error_id, f.trajectory_id AS run, f.id AS fragment,
    r.trajectory_id AS other, r.id AS representative, s.weight AS weight
ORDER BY fragment, error_id

// name: exposures
// Contexts that were shown, with what was in them.
MATCH (c:Context {tenant: $tenant})
WHERE c.id > $after
WITH c ORDER BY c.id LIMIT $limit
RETURN c.id AS context_id, c.shown_at AS shown_at, c.error_id AS error_id, c.helped AS helped,
    COLLECT { MATCH (c)-[s:SHOWED]->(i:ShownItem) RETURN [i.id, s.share] } AS items
ORDER BY context_id

// name: restore_exposures
// Contexts as they were archived; those that are noted already stay as they are.
UNWIND $rows AS row
CALL (row) {
    MERGE (c:Context {tenant: $tenant, id: row.context_id})
    ON CREATE SET c.name = 'context ' + row.context_id, c.shown_at = row.shown_at,
        c.error_id = row.error_id, c.helped = row.helped, c.is_new = true
    WITH c, row WHERE c.is_new
    REMOVE c.is_new
    WITH c, row
    UNWIND row.items AS item
    MERGE (i:ShownItem {tenant: $tenant, id: item[0]})
    ON CREATE SET i.name = item[0]
    CREATE (c)-[:SHOWED {share: item[1]}]->(i)
}
