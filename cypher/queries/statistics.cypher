// Counts: how errors went within a scope, and how much a memory holds.

// name: common_errors_in_repo
// Errors that most runs met in a repository.
MATCH (:Trajectory)-[m:MET]->(e:ErrorPattern)
WHERE m.tenant = $tenant AND m.repo = $repo AND m.fingerprint IS NOT NULL
    AND m.seen_at IS NOT NULL
    AND ($as_of IS NULL OR m.seen_at <= $as_of)
    AND NOT m.instance_id IN $excluded
WITH e, m ORDER BY m.seen_at DESC, m.trajectory_id
WITH e, count(*) AS runs, sum(m.steps) AS steps,
    sum(CASE WHEN m.cleared THEN 1 ELSE 0 END) AS cleared,
    collect(m.trajectory_id)[..$most] AS trajectories
ORDER BY runs DESC, e.id LIMIT $limit
RETURN e {.id, .family, .error_type, .template, .keywords, .context} AS error,
    runs, steps, cleared, trajectories
ORDER BY runs DESC, e.id

// name: common_errors_in_phase_in_repo
// Errors that most runs met in one phase in a repository.
MATCH (:Fragment)-[c:CAUSED_ERROR]->(e:ErrorPattern)
WHERE c.tenant = $tenant AND c.repo = $repo AND c.phase = $phase
    AND ($as_of IS NULL OR c.seen_at <= $as_of)
    AND NOT c.instance_id IN $excluded
WITH e, c.trajectory_id AS run, c.seen_at AS seen_at, sum(size(c.steps)) AS steps
WITH e, run, seen_at, steps, EXISTS {
    MATCH (:Trajectory {tenant: $tenant, id: run})-[:MET {cleared: true}]->(e)
} AS cleared
ORDER BY seen_at DESC, run
WITH e, count(*) AS runs, sum(steps) AS steps,
    sum(CASE WHEN cleared THEN 1 ELSE 0 END) AS cleared,
    collect(run)[..$most] AS trajectories
ORDER BY runs DESC, e.id LIMIT $limit
RETURN e {.id, .family, .error_type, .template, .keywords, .context} AS error,
    runs, steps, cleared, trajectories
ORDER BY runs DESC, e.id

// name: common_errors_everywhere
// Errors that most runs met.
MATCH (:Trajectory)-[m:MET]->(e:ErrorPattern)
WHERE m.tenant = $tenant AND m.fingerprint IS NOT NULL
    AND m.seen_at IS NOT NULL
    AND ($as_of IS NULL OR m.seen_at <= $as_of)
    AND NOT m.instance_id IN $excluded
WITH e, m ORDER BY m.seen_at DESC, m.trajectory_id
WITH e, count(*) AS runs, sum(m.steps) AS steps,
    sum(CASE WHEN m.cleared THEN 1 ELSE 0 END) AS cleared,
    collect(m.trajectory_id)[..$most] AS trajectories
ORDER BY runs DESC, e.id LIMIT $limit
RETURN e {.id, .family, .error_type, .template, .keywords, .context} AS error,
    runs, steps, cleared, trajectories
ORDER BY runs DESC, e.id

// name: common_errors_in_phase_everywhere
// Errors that most runs met in one phase.
MATCH (:Fragment)-[c:CAUSED_ERROR]->(e:ErrorPattern)
WHERE c.tenant = $tenant AND c.repo IS NOT NULL AND c.phase = $phase
    AND ($as_of IS NULL OR c.seen_at <= $as_of)
    AND NOT c.instance_id IN $excluded
WITH e, c.trajectory_id AS run, c.seen_at AS seen_at, sum(size(c.steps)) AS steps
WITH e, run, seen_at, steps, EXISTS {
    MATCH (:Trajectory {tenant: $tenant, id: run})-[:MET {cleared: true}]->(e)
} AS cleared
ORDER BY seen_at DESC, run
WITH e, count(*) AS runs, sum(steps) AS steps,
    sum(CASE WHEN cleared THEN 1 ELSE 0 END) AS cleared,
    collect(run)[..$most] AS trajectories
ORDER BY runs DESC, e.id LIMIT $limit
RETURN e {.id, .family, .error_type, .template, .keywords, .context} AS error,
    runs, steps, cleared, trajectories
ORDER BY runs DESC, e.id

// name: error_tally_in_repo
// How an error went in a repository.
MATCH (:Trajectory)-[m:MET]->(e:ErrorPattern)
WHERE m.tenant = $tenant AND m.repo = $repo AND m.fingerprint = $fingerprint
    AND m.seen_at IS NOT NULL
    AND ($as_of IS NULL OR m.seen_at <= $as_of)
    AND NOT m.instance_id IN $excluded
WITH e, m ORDER BY m.seen_at DESC, m.trajectory_id
WITH e, count(*) AS runs, sum(m.steps) AS steps,
    sum(CASE WHEN m.cleared THEN 1 ELSE 0 END) AS cleared,
    collect(m.trajectory_id)[..$most] AS trajectories
RETURN e {.id, .family, .error_type, .template, .keywords, .context} AS error,
    runs, steps, cleared, trajectories
ORDER BY runs DESC, e.id

// name: error_tally_everywhere
// How an error went.
MATCH (:Trajectory)-[m:MET]->(e:ErrorPattern)
WHERE m.tenant = $tenant AND m.fingerprint = $fingerprint
    AND m.seen_at IS NOT NULL
    AND ($as_of IS NULL OR m.seen_at <= $as_of)
    AND NOT m.instance_id IN $excluded
WITH e, m ORDER BY m.seen_at DESC, m.trajectory_id
WITH e, count(*) AS runs, sum(m.steps) AS steps,
    sum(CASE WHEN m.cleared THEN 1 ELSE 0 END) AS cleared,
    collect(m.trajectory_id)[..$most] AS trajectories
RETURN e {.id, .family, .error_type, .template, .keywords, .context} AS error,
    runs, steps, cleared, trajectories
ORDER BY runs DESC, e.id

// name: errors_of_runs
// Errors met in some runs, those of most of them first.
UNWIND $ids AS id
MATCH (:Trajectory {tenant: $tenant, id: id})-[m:MET]->(e:ErrorPattern)
WITH e, m ORDER BY m.seen_at DESC, m.trajectory_id
WITH e, count(*) AS runs, sum(m.steps) AS steps,
    sum(CASE WHEN m.cleared THEN 1 ELSE 0 END) AS cleared,
    collect(m.trajectory_id)[..$most] AS trajectories
ORDER BY runs DESC, e.id LIMIT $limit
RETURN e {.id, .family, .error_type, .template, .keywords, .context} AS error,
    runs, steps, cleared, trajectories
ORDER BY runs DESC, e.id

// name: counts
// Nodes and relations, outcomes and repositories.
CALL () {
    MATCH (t:Trajectory {tenant: $tenant})
    WHERE t.id IS NOT NULL
    RETURN collect(t.outcome) AS outcomes, count(DISTINCT nullif(t.repo, '')) AS repositories,
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
RETURN outcomes, repositories, fragments, caused, recovered, errors, statuses, resolved, derived,
    supersedes, similar

// name: error_frequency
// In how many fragments an error of each type occurred.
MATCH (e:ErrorPattern {tenant: $tenant})<-[:CAUSED_ERROR]-(f:Fragment)
WHERE e.id IS NOT NULL
RETURN e.error_type AS error_type, count(DISTINCT f) AS fragments
ORDER BY fragments DESC, error_type

// name: errors_by_run
// The errors of each run with their steps.
MATCH (e:ErrorPattern {tenant: $tenant})<-[c:CAUSED_ERROR]-(:Fragment)
WHERE e.id IS NOT NULL
RETURN c.trajectory_id AS run, collect([c.steps, e.id, e.error_type]) AS met
ORDER BY run
