// The memory as a whole: consolidation, counts, provenance, its graph.

// name: lease
// The holder of the lease and when it expires; read while the memory is locked.
MATCH (m:Memory {tenant: $tenant})
RETURN m.lease_holder AS holder, m.lease_until AS until,
    CASE WHEN m.lease_machine IS NOT NULL
        THEN {machine: m.lease_machine, number: m.lease_process, started_at: m.lease_started_at}
    END AS process

// name: take_lease
MATCH (m:Memory {tenant: $tenant})
SET m.lease_holder = $holder, m.lease_until = $until, m.lease_machine = $process.machine,
    m.lease_process = $process.number, m.lease_started_at = $process.started_at

// name: unconsolidated
// What was learned, updated or marked as changed since the last consolidation, or after a revision.
MATCH (m:Memory {tenant: $tenant})
WITH m, coalesce($after, m.consolidated) AS since, coalesce($after, -1) AS marked_since
RETURN m.revision AS revision,
    COUNT { MATCH (t:Trajectory {tenant: $tenant}) WHERE t.revision > since } AS trajectories,
    COLLECT {
        MATCH (t:Trajectory {tenant: $tenant}) WHERE t.revision > since RETURN DISTINCT t.repo
    } AS run_repos,
    COLLECT {
        MATCH (t:Trajectory {tenant: $tenant}) WHERE t.revision > since
        MATCH (t)-[:MET]->(e:ErrorPattern)
        RETURN DISTINCT e.id
    } AS met_errors,
    COLLECT {
        MATCH (s:StaleError {tenant: $tenant})
        WHERE s.id IS NOT NULL AND s.revision > marked_since
        RETURN s.id
    } AS changed_errors,
    COLLECT {
        MATCH (s:StaleRepo {tenant: $tenant})
        WHERE s.repo IS NOT NULL AND s.revision > marked_since
        RETURN s.repo
    } AS changed_repos

// name: mark_consolidated
MATCH (m:Memory {tenant: $tenant})
SET m.consolidated = $revision, m.gate = coalesce($gate, m.gate)

// name: remove_changed_errors
// (Eager, but over nodes with an id and a number.)
MATCH (s:StaleError {tenant: $tenant})
WHERE s.id IS NOT NULL AND s.revision <= $revision
DELETE s

// name: remove_changed_repos
// (Eager as well.)
MATCH (s:StaleRepo {tenant: $tenant})
WHERE s.repo IS NOT NULL AND s.revision <= $revision
DELETE s

// name: note_replanning
// The number of runs, where it has grown many times since the server planned its queries. (Eager over
// one node.)
MATCH (m:Memory {tenant: $tenant})
WHERE m.trajectories >= $times * coalesce(m.planned_at, $least)
WITH m LIMIT 1
SET m.planned_at = m.trajectories
RETURN m.planned_at AS trajectories

// name: counts
// Nodes and relations, outcomes and repositories.
CALL () {
    MATCH (t:Trajectory {tenant: $tenant})
    WHERE t.id IS NOT NULL
    RETURN collect(t.outcome) AS outcomes,
        collect(coalesce(t.change, 'unknown')) AS changes, count(DISTINCT nullif(t.repo, '')) AS repositories,
        sum(COUNT { (t)-[:HAS_FRAGMENT]->() }) AS fragments
}
CALL () {
    MATCH (:Fragment)-[c:CAUSED_ERROR]->(:ErrorPattern)
    WHERE c.tenant = $tenant AND c.repo IS NOT NULL AND c.phase IS NOT NULL
    RETURN count(c) AS caused
}
CALL () {
    MATCH (:Fragment)-[r:RECOVERED]->(:ErrorPattern)
    WHERE r.tenant = $tenant AND r.repo IS NOT NULL AND r.fingerprint IS NOT NULL
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
    RETURN count(r) AS recovered
}
CALL () {
    MATCH (e:ErrorPattern {tenant: $tenant})
    WHERE e.id IS NOT NULL
    RETURN count(e) AS errors
}
CALL () {
    MATCH (m:Methodology {tenant: $tenant})
    WHERE m.id IS NOT NULL
    RETURN collect(m.status) AS statuses,
        sum(COUNT { (m)<-[:RESOLVED_BY]-() }) AS resolved,
        sum(COUNT { (m)-[:DERIVED_FROM]->() }) AS derived,
        sum(COUNT { (m)-[:SUPERSEDES]->() }) AS supersedes
}
CALL () {
    MATCH (:Fragment)-[s:SIMILAR_TO]->(:Fragment)
    WHERE s.tenant = $tenant
    RETURN count(s) AS similar
}
RETURN outcomes, changes, repositories, fragments, caused, recovered, errors, statuses, resolved, derived,
    supersedes, similar

// name: explain_trajectory
MATCH (n:Trajectory {tenant: $tenant, id: $id})
RETURN n.name AS name, n {.instance_id, .repo, .task_type, .outcome, .outcome_source, .exit_status,
    .total_steps, .summary, .agent, .model, .source,
    contributor: CASE WHEN n.contributor > '' THEN n.contributor END, .seen_at} AS facts

// name: explain_fragment
MATCH (n:Fragment {tenant: $tenant, id: $id})
RETURN n.name AS name, n {first_step: n.start, last_step: n.end, .fragment_type, .phase, .outcome,
    .description, .repo, .open_file} AS facts

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
    .superseded_by} AS facts

// name: names_of
// Labels and names of the fragments and methodologies with these ids.
UNWIND $ids AS id
CALL (id) {
    MATCH (n:Fragment {tenant: $tenant, id: id}) RETURN 'Fragment' AS label, n.name AS name
    UNION
    MATCH (n:Methodology {tenant: $tenant, id: id}) RETURN 'Methodology' AS label, n.name AS name
}
RETURN id, label, name

// name: relations_of
// The edges of a node, with the properties that are of use to a reader.
CALL () {
    MATCH (n:Trajectory {tenant: $tenant, id: $id}) RETURN n
    UNION
    MATCH (n:Fragment {tenant: $tenant, id: $id}) RETURN n
    UNION
    MATCH (n:Methodology {tenant: $tenant, id: $id}) RETURN n
}
MATCH (n)-[r:HAS_FRAGMENT|CAUSED_ERROR|RECOVERED|RESOLVED_BY|DERIVED_FROM|SUPERSEDES|SIMILAR_TO]
    -(other)
RETURN type(r) AS type, startNode(r) = n AS outgoing, other.id AS id,
    head(labels(other)) AS label, other.name AS name,
    r {.order, .steps, .error_step, .cleared_step, .verified, .success_rate, .avg_steps, .support,
    .error_id, .weight} AS properties
UNION ALL
MATCH (n:ErrorPattern {tenant: $tenant, id: $id})
CALL (n) {
    MATCH (n)-[r:RESOLVED_BY]-(other) RETURN r, other
    UNION
    MATCH (n)<-[m:MET]-(t:Trajectory)
    WITH n, t ORDER BY m.seen_at DESC, t.id LIMIT $runs
    MATCH (t)-[:HAS_FRAGMENT]->(other:Fragment)-[r:CAUSED_ERROR|RECOVERED]->(n)
    RETURN r, other
}
RETURN type(r) AS type, startNode(r) = n AS outgoing, other.id AS id,
    head(labels(other)) AS label, other.name AS name,
    r {.order, .steps, .error_step, .cleared_step, .verified, .success_rate, .avg_steps, .support,
    .error_id, .weight} AS properties

// name: graph_runs
// Runs that were learned or changed after a revision, as nodes and relations without their texts.
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.revision > $revision
RETURN t.id AS id, t {.name, .repo, .outcome} AS attributes,
    COLLECT {
        MATCH (t)-[:MET]->(e:ErrorPattern) RETURN [e.id, e {.name, .family, .error_type}]
    } AS errors,
    COLLECT {
        MATCH (t)-[h:HAS_FRAGMENT]->(f:Fragment)
        RETURN [f.id, h.order, f {.name, .repo, .fragment_type, .phase, .outcome}]
    } AS fragments,
    COLLECT {
        MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)-[r:CAUSED_ERROR|RECOVERED]->(e:ErrorPattern)
        RETURN [type(r), f.id, e.id, CASE type(r)
            WHEN 'CAUSED_ERROR' THEN r {.steps}
            ELSE r {.error_step, .cleared_step, .verified}
        END]
    } AS relations

// name: graph_methodologies
MATCH (m:Methodology {tenant: $tenant})
WHERE m.id IS NOT NULL
RETURN m.id AS id, m {.name, .status, .support, .confidence, repo: coalesce(m.repo, '')} AS attributes,
    COLLECT {
        MATCH (m)<-[r:RESOLVED_BY]-(e:ErrorPattern)
        RETURN [e.id, r {.success_rate, .avg_steps, .support}]
    } AS resolves,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN f.id } AS sources,
    COLLECT { MATCH (m)-[:SUPERSEDES]->(before:Methodology) RETURN before.id } AS superseded

// name: graph_similar
MATCH (f:Fragment)-[s:SIMILAR_TO]->(r:Fragment)
WHERE s.tenant = $tenant
RETURN f.id AS fragment, r.id AS representative, s {.error_id, .weight} AS properties

// name: stray_nodes
// Runs without a raw run, and fragments without a run.
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
