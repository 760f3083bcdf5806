// Methodologies: found for an error, read back, written, taken away.

// name: methodologies_for_error
// Those that resolve the first error that has any, those of the repository first, then by support.
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
RETURN m {.id, .error_id, .keyword, .task_type, .repo, .situation, .strategy, .made_by, .status,
    .confidence, .support, .repositories, .success_rate, .avg_steps, .frequency, .success_count,
    .failure_count, .last_used, .superseded_by, .phase} AS methodology,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources
ORDER BY m.repo IS NULL, m.support DESC, m.id

// name: methodologies_for_task
// Those of no error, for one type of task or all, in the same order.
MATCH (m:Methodology {tenant: $tenant, error_id: ''})
WHERE m.status <> 'retired' AND ($repo IS NULL OR m.repo IS NULL OR m.repo = $repo)
    AND ($task_type IS NULL OR m.task_type IS NULL OR m.task_type = $task_type)
    AND (($as_of IS NULL AND $excluded = []) OR NOT EXISTS {
        (m)-[:DERIVED_FROM]->(f:Fragment)
        WHERE f.seen_at > $as_of OR f.instance_id IN $excluded
    })
WITH m ORDER BY m.repo IS NULL, m.support DESC, m.id LIMIT $limit
RETURN m {.id, .error_id, .keyword, .task_type, .repo, .situation, .strategy, .made_by, .status,
    .confidence, .support, .repositories, .success_rate, .avg_steps, .frequency, .success_count,
    .failure_count, .last_used, .superseded_by, .phase} AS methodology,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources
ORDER BY m.repo IS NULL, m.support DESC, m.id

// name: methodologies_of_repos
// Those of no error that are of some repositories.
MATCH (m:Methodology {tenant: $tenant, error_id: ''})
WHERE m.repo IN $repos
RETURN m {.id, .error_id, .keyword, .task_type, .repo, .situation, .strategy, .made_by, .status,
    .confidence, .support, .repositories, .success_rate, .avg_steps, .frequency, .success_count,
    .failure_count, .last_used, .superseded_by, .phase} AS methodology,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources
ORDER BY m.id

// name: methodologies_of
UNWIND $ids AS id
MATCH (m:Methodology {tenant: $tenant, id: id})
RETURN m {.id, .error_id, .keyword, .task_type, .repo, .situation, .strategy, .made_by, .status,
    .confidence, .support, .repositories, .success_rate, .avg_steps, .frequency, .success_count,
    .failure_count, .last_used, .superseded_by, .phase} AS methodology,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources
ORDER BY m.id

// name: methodologies_of_errors
UNWIND $ids AS id
MATCH (m:Methodology {tenant: $tenant, error_id: id})
RETURN m {.id, .error_id, .keyword, .task_type, .repo, .situation, .strategy, .made_by, .status,
    .confidence, .support, .repositories, .success_rate, .avg_steps, .frequency, .success_count,
    .failure_count, .last_used, .superseded_by, .phase} AS methodology,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources
ORDER BY m.id

// name: methodologies_of_types
// Those of all errors of the families and types of some.
UNWIND $ids AS id
MATCH (asked:ErrorPattern {tenant: $tenant, id: id})
WITH DISTINCT asked.family AS family, asked.error_type AS error_type
MATCH (e:ErrorPattern {tenant: $tenant, family: family, error_type: error_type})
MATCH (m:Methodology {tenant: $tenant, error_id: e.id})
RETURN m {.id, .error_id, .keyword, .task_type, .repo, .situation, .strategy, .made_by, .status,
    .confidence, .support, .repositories, .success_rate, .avg_steps, .frequency, .success_count,
    .failure_count, .last_used, .superseded_by, .phase} AS methodology,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources,
    family, error_type
ORDER BY m.id

// name: methodology_ids
MATCH (m:Methodology {tenant: $tenant})
WHERE m.id IS NOT NULL
RETURN m.id AS id ORDER BY id

// name: resolved_by
// The errors that a methodology resolves.
MATCH (m:Methodology {tenant: $tenant, id: $id})<-[r:RESOLVED_BY]-(e:ErrorPattern)
RETURN e.id AS error_id, m.id AS methodology_id, r.success_rate AS success_rate,
    r.avg_steps AS avg_steps, r.support AS support
ORDER BY error_id

// name: shown_methodologies
// Those of which it was reported whether they helped.
MATCH (m:Methodology {tenant: $tenant})
WHERE m.id IS NOT NULL
MATCH (i:ShownItem {tenant: $tenant, id: m.id})
WHERE EXISTS { (i)<-[:SHOWED]-(c:Context) WHERE c.helped IS NOT NULL }
RETURN m.id AS id ORDER BY id

// name: drop_outdated_vectors
// Let methodologies whose text is another by now be embedded anew.
UNWIND $rows AS row
CALL (row) {
    MATCH (m:Methodology {tenant: $tenant, id: row.id})
    WHERE m.situation <> row.situation OR m.strategy <> row.strategy
    CALL (m) {
        UNWIND m.embedded AS property
        SET m[property] = null
    }
    SET m.embedded = null
}

// name: put_methodologies
// Write methodologies in the place of those of their ids.
UNWIND $rows AS row
MERGE (m:Methodology {tenant: $tenant, id: row.id})
ON CREATE SET m += row
ON MATCH SET m += row

// name: unlink_methodologies
// Take their sources from methodologies, and what had taken their place.
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
// Methodologies to those that took their place, whichever of the two was written now.
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
// Which of these fragments are there, and whose they are.
UNWIND $ids AS id
MATCH (f:Fragment {tenant: $tenant, id: id})
RETURN DISTINCT f.id AS id, f.trajectory_id AS trajectory_id

// name: similar_to
// What fragments are known to be like.
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

// name: orphans
// Methodologies that no fragment supports, tombstones excepted.
MATCH (m:Methodology {tenant: $tenant})
WHERE m.id IS NOT NULL AND m.status <> 'retired' AND NOT EXISTS { (m)-[:DERIVED_FROM]->() }
RETURN m.id AS id ORDER BY m.tenant, m.id LIMIT $limit

// name: with_superseded
// Methodologies with all that they had superseded.
UNWIND $ids AS id
MATCH (:Methodology {tenant: $tenant, id: id})-[:SUPERSEDES*0..]->(gone:Methodology)
RETURN DISTINCT gone.id AS id, gone.error_id AS error_id, gone.repo AS repo,
    gone.superseded_by AS superseded_by

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

// name: errors_met_by_runs
UNWIND $ids AS id
MATCH (:Trajectory {tenant: $tenant, id: id})-[:MET]->(e:ErrorPattern)
RETURN DISTINCT e.id AS id

// name: repos_of_runs
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
RETURN DISTINCT t.repo AS repo

// name: mark_stale_repos
UNWIND $repos AS repo
MERGE (s:StaleRepo {tenant: $tenant, repo: repo})
SET s.name = repo, s.revision = $revision

// name: mark_stale
// Errors to look at again although no run that met them was learned since.
UNWIND $ids AS id
MERGE (s:StaleError {tenant: $tenant, id: id})
SET s.name = id, s.revision = $revision
