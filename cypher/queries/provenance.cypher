// Where something comes from.

// name: explain_trajectory
MATCH (n:Trajectory {tenant: $tenant, id: $id})
RETURN n.name AS name, n {.instance_id, .repo, .task_type, .outcome, .exit_status, .total_steps,
    .summary, .agent, .model, .source, .seen_at, .retold, .retold_by} AS facts

// name: explain_fragment
MATCH (n:Fragment {tenant: $tenant, id: $id})
RETURN n.name AS name, n {first_step: n.start, last_step: n.end, .fragment_type, .phase, .outcome,
    .description, .repo, .open_file, .retold} AS facts

// name: explain_error
MATCH (n:ErrorPattern {tenant: $tenant, id: $id})
RETURN n.name AS name, n {.family, .error_type, .template,
    runs: COUNT { (n)<-[:MET]-() },
    cleared_runs: COUNT { (n)<-[m:MET]-() WHERE m.cleared }} AS facts

// name: explain_methodology
MATCH (n:Methodology {tenant: $tenant, id: $id})
RETURN n.name AS name, n {.situation, .strategy, .repo, .keyword, .task_type, .status, .confidence,
    .support, .repositories, .frequency, .success_rate, .avg_steps,
    shown_and_helped: n.success_count, shown_and_did_not: n.failure_count, .made_by,
    .superseded_by, .phase} AS facts

// name: explain_context
// A context that was shown: when, whether it helped, and what was in it.
MATCH (c:Context {tenant: $tenant, id: $id})
RETURN c.shown_at AS shown_at, c.helped AS helped,
    COLLECT { MATCH (c)-[:SHOWED]->(i:ShownItem) RETURN i.id } AS items

// name: names_of
// Labels and names of what these ids stand for.
UNWIND $ids AS id
CALL (id) {
    MATCH (n:Fragment {tenant: $tenant, id: id}) RETURN 'Fragment' AS label, n.name AS name
    UNION
    MATCH (n:Methodology {tenant: $tenant, id: id}) RETURN 'Methodology' AS label, n.name AS name
    UNION
    MATCH (n:Trajectory {tenant: $tenant, id: id}) RETURN 'Trajectory' AS label, n.name AS name
    UNION
    MATCH (n:ErrorPattern {tenant: $tenant, id: id}) RETURN 'ErrorPattern' AS label, n.name AS name
}
RETURN id, label, name

// name: relations_of
// The edges of a node, with the properties that say something to a reader.
CALL () {
    MATCH (n:Trajectory {tenant: $tenant, id: $id}) RETURN n
    UNION
    MATCH (n:Fragment {tenant: $tenant, id: $id}) RETURN n
    UNION
    MATCH (n:ErrorPattern {tenant: $tenant, id: $id}) RETURN n
    UNION
    MATCH (n:Methodology {tenant: $tenant, id: $id}) RETURN n
}
MATCH (n)-[r:HAS_FRAGMENT|CAUSED_ERROR|RECOVERED|RESOLVED_BY|DERIVED_FROM|SUPERSEDES|SIMILAR_TO]
    -(other)
RETURN type(r) AS type, startNode(r) = n AS outgoing, other.id AS id,
    head(labels(other)) AS label, other.name AS name,
    r {.order, .steps, .error_step, .cleared_step, .verified, .success_rate, .avg_steps, .support,
    .error_id, .weight} AS properties
