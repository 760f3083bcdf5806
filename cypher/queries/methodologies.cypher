// Methodologies: found for an error, read, written, removed. Of one that was deleted meanwhile the strategy
// is null, which `rows.is_torn` detects; `.*` alone leaves out what is null.

// name: methodologies_for_error
// Those of the first template that has any, those of the repository first, then by support. Without
// their sources.
UNWIND range(0, size($fingerprints) - 1) AS number
MATCH (e:ErrorPattern {tenant: $tenant, fingerprint: $fingerprints[number]})
    -[:RESOLVED_BY]->(m:Methodology)
WHERE m.status <> 'retired' AND ($repo IS NULL OR m.repo IS NULL OR m.repo = $repo)
    AND (($as_of IS NULL AND $excluded = []) OR NOT EXISTS {
        (m)-[:DERIVED_FROM]->(f:Fragment)
        WHERE f.seen_at > $as_of OR f.instance_id IN $excluded
    })
WITH number, collect(m) AS found ORDER BY number LIMIT 1
UNWIND found AS m
WITH m ORDER BY m.repo IS NULL, m.support DESC, m.id LIMIT $limit
RETURN m {.*, .strategy} AS methodology, [] AS sources
ORDER BY m.repo IS NULL, m.support DESC, m.id

// name: methodologies
// Those with some ids, and those of some errors.
CALL () {
    UNWIND $ids AS id
    MATCH (m:Methodology {tenant: $tenant, id: id})
    RETURN m
    UNION
    UNWIND $errors AS id
    MATCH (m:Methodology {tenant: $tenant, error_id: id})
    RETURN m
}
RETURN m {.*, .strategy} AS methodology,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources
ORDER BY m.id

// name: methodologies_of_types
// Those of all errors with the families and types of some.
UNWIND $ids AS id
MATCH (given:ErrorPattern {tenant: $tenant, id: id})
WITH DISTINCT given.family AS family, given.error_type AS error_type
MATCH (e:ErrorPattern {tenant: $tenant, family: family, error_type: error_type})
MATCH (m:Methodology {tenant: $tenant, error_id: e.id})
RETURN m {.*, .strategy} AS methodology,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources,
    family, error_type
ORDER BY m.id

// name: methodology_ids
// The ids of all methodologies after one, or of those of a repository.
MATCH (m:Methodology)
WHERE m.tenant = $tenant AND m.id > $after AND ($repo IS NULL OR m.repo = $repo)
WITH m ORDER BY m.tenant, m.id LIMIT $limit
RETURN collect(m.id) AS found

// name: put_methodologies
// Write methodologies, replacing those with the same ids.
UNWIND $rows AS row
MERGE (m:Methodology {tenant: $tenant, id: row.id})
ON CREATE SET m += row
ON MATCH SET m += row, m.space = null, m.embedding = null

// name: unlink_methodologies
// Delete the edges of methodologies to their sources and to what superseded them.
UNWIND $ids AS id
CALL (id) {
    MATCH (m:Methodology {tenant: $tenant, id: id})
    OPTIONAL MATCH (m)-[d:DERIVED_FROM]->(:Fragment)
    OPTIONAL MATCH (m)<-[s:SUPERSEDES]-(:Methodology)
    DELETE d, s
}

// name: link_sources
UNWIND $rows AS row
MATCH (m:Methodology {tenant: $tenant, id: row.methodology_id})
CALL (row, m) {
    MATCH (f:Fragment {tenant: $tenant, id: row.fragment_id})
    WHERE f.trajectory_id = row.trajectory_id
    CREATE (m)-[:DERIVED_FROM]->(f)
}

// name: link_superseded
// Edges between methodologies and those that superseded them, whichever of the two was written now.
UNWIND $ids AS id
MATCH (m:Methodology {tenant: $tenant, id: id})
CALL (m) {
    MATCH (before:Methodology {tenant: m.tenant, superseded_by: m.id})
    MERGE (m)-[:SUPERSEDES]->(before)
    UNION
    MATCH (after:Methodology {tenant: m.tenant, id: m.superseded_by})
    MERGE (after)-[:SUPERSEDES]->(m)
}

// name: unlink_resolved
// A tombstone resolves nothing.
UNWIND $ids AS id
CALL (id) {
    MATCH (:Methodology {tenant: $tenant, id: id})<-[r:RESOLVED_BY]-(:ErrorPattern)
    DELETE r
}

// name: link_resolved
UNWIND $rows AS row
MATCH (m:Methodology {tenant: $tenant, id: row.methodology_id})
CALL (row, m) {
    MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
    MERGE (e)-[r:RESOLVED_BY]->(m)
    SET r.success_rate = row.success_rate, r.avg_steps = row.avg_steps, r.support = row.support
}

// name: runs_of_fragments
// Which of these fragments exist, and of which runs.
UNWIND $ids AS id
MATCH (f:Fragment {tenant: $tenant, id: id})
RETURN DISTINCT f.id AS id, f.trajectory_id AS trajectory_id

// name: similar_to
// The SIMILAR_TO edges of fragments.
UNWIND $rows AS row
MATCH (f:Fragment {tenant: $tenant, id: row.fragment})
    -[s:SIMILAR_TO {error_id: row.error_id}]->(r:Fragment)
RETURN f.id AS fragment, s.error_id AS error_id, r.id AS representative, s.weight AS weight

// name: unlink_similar
UNWIND $rows AS row
CALL (row) {
    MATCH (:Fragment {tenant: $tenant, id: row.fragment})
        -[s:SIMILAR_TO {error_id: row.error_id}]->(:Fragment)
    DELETE s
}

// name: link_similar
UNWIND $rows AS row
MATCH (f:Fragment {tenant: $tenant, id: row.fragment})
CALL (row, f) {
    MATCH (r:Fragment {tenant: $tenant, id: row.representative})
    CREATE (f)-[:SIMILAR_TO {tenant: $tenant, error_id: row.error_id, weight: row.weight}]->(r)
}

// name: count_errors
// How many runs met these errors, for analysts; and their type by the name that the design gave it.
UNWIND $rows AS id
MATCH (e:ErrorPattern {tenant: $tenant, id: id})
SET e.frequency = COUNT { (:Trajectory)-[:MET]->(e) }, e.type = e.error_type

// name: orphans
// Methodologies that no fragment supports, tombstones excepted.
MATCH (m:Methodology {tenant: $tenant})
WHERE m.id IS NOT NULL AND m.status <> 'retired' AND NOT EXISTS { (m)-[:DERIVED_FROM]->() }
WITH m ORDER BY m.tenant, m.id LIMIT $limit
RETURN collect(m.id) AS found

// name: with_superseded
// Methodologies with all that they superseded.
UNWIND $ids AS id
MATCH (:Methodology {tenant: $tenant, id: id})-[:SUPERSEDES*0..]->(gone:Methodology)
RETURN DISTINCT gone.id AS id, gone.error_id AS error_id, gone.superseded_by AS superseded_by

// name: remove_methodologies
MATCH (m:Methodology)
WHERE m.tenant = $tenant AND m.id IN $ids
DETACH DELETE m

// name: derived_from_runs
// Methodologies that were derived from runs.
UNWIND $ids AS id
MATCH (:Trajectory {tenant: $tenant, id: id})-[:HAS_FRAGMENT]->(:Fragment)
    <-[:DERIVED_FROM]-(m:Methodology)
RETURN DISTINCT m.id AS id

// name: mark_errors_changed
// Errors to consolidate again although no run that met them was learned since.
UNWIND $ids AS id
MERGE (s:StaleError {tenant: $tenant, id: id})
SET s.name = id, s.revision = $revision

// name: remove_repos_without_runs
// Nothing of these is left to consolidate, and their names are not to be kept.
UNWIND $repos AS repo
CALL (repo) {
    MATCH (s:StaleRepo {tenant: $tenant, repo: repo})
    WHERE NOT EXISTS { MATCH (t:Trajectory {tenant: $tenant, repo: repo}) WHERE t.solved IS NOT NULL AND t.seen_at IS NOT NULL }
    DELETE s
}

// name: mark_repos_changed
// Repositories whose runs changed.
UNWIND $repos AS repo
MERGE (s:StaleRepo {tenant: $tenant, repo: repo})
SET s.name = repo, s.revision = $revision
