// What has yet to be consolidated, and who is at it.

// name: learned_since_consolidation
MATCH (m:Memory {tenant: $tenant})
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.revision > m.consolidated
RETURN count(t) AS trajectories

// name: lease
// Who is at it until when; asked for while the memory is locked.
MATCH (m:Memory {tenant: $tenant})
RETURN m.lease_holder AS holder, m.lease_until AS until

// name: take_lease
MATCH (m:Memory {tenant: $tenant})
SET m.lease_holder = $holder, m.lease_until = $until

// name: return_lease
MATCH (m:Memory {tenant: $tenant})
SET m.lease_holder = CASE m.lease_holder WHEN $holder THEN null ELSE m.lease_holder END

// name: revisions
// How far the memory has come, and how far it is consolidated.
MATCH (m:Memory {tenant: $tenant})
RETURN m.revision AS revision, m.consolidated AS consolidated

// name: changed_since
// How many runs were learned or updated after a revision, and in which repositories.
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.revision > $revision
RETURN count(t) AS trajectories, collect(DISTINCT t.repo) AS repos

// name: errors_met_since
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.revision > $revision
MATCH (t)-[:MET]->(e:ErrorPattern)
RETURN DISTINCT e.id AS id

// name: stale_errors
MATCH (s:StaleError {tenant: $tenant})
WHERE s.id IS NOT NULL AND s.revision > $revision
RETURN s.id AS id

// name: stale_repos
MATCH (s:StaleRepo {tenant: $tenant})
WHERE s.repo IS NOT NULL AND s.revision > $revision
RETURN s.repo AS repo

// name: mark_consolidated
MATCH (m:Memory {tenant: $tenant})
SET m.consolidated = $revision

// name: note_plans
// How much there is, where it has grown many times over since queries were planned by it. What is
// read and set belongs to one node: that the one waits for the other is no matter.
MATCH (m:Memory {tenant: $tenant})
WHERE m.trajectories >= $times * coalesce(m.planned_at, $least)
WITH m LIMIT 1
SET m.planned_at = m.trajectories
RETURN m.planned_at AS trajectories

// name: remove_stale_errors
// All are found before the first goes: nodes of an id and a number each.
MATCH (s:StaleError {tenant: $tenant})
WHERE s.id IS NOT NULL AND s.revision <= $revision
DELETE s

// name: remove_stale_repos
// In the same way.
MATCH (s:StaleRepo {tenant: $tenant})
WHERE s.repo IS NOT NULL AND s.revision <= $revision
DELETE s

// name: error_histories
// How the newest runs that met each of some errors went with it.
UNWIND $ids AS id
MATCH (e:ErrorPattern {tenant: $tenant, id: id})
RETURN e {.id, .family, .error_type, .template, .keywords, .context} AS error, COLLECT {
    MATCH (e)<-[m:MET]-(t:Trajectory)
    WITH m, t ORDER BY m.seen_at DESC, t.id LIMIT $runs
    RETURN {trajectory_id: t.id, repo: t.repo, task_type: t.task_type, outcome: t.outcome,
        seen_at: t.seen_at, message: m.context, cleared: COLLECT {
            MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)-[r:RECOVERED]->(e)
            RETURN [f.id, r {.error_step, .cleared_step, .message, .location, .what, .actions,
                .verified, .workaround}]
        }} ORDER BY m.seen_at DESC, t.id
} AS met
ORDER BY error.id

// name: repo_histories
// The newest runs of each of some repositories, with what they did that did not fail.
UNWIND $repos AS repo
RETURN repo, COLLECT {
    MATCH (t:Trajectory {tenant: $tenant, repo: repo})
    WHERE t.solved IS NOT NULL AND t.seen_at IS NOT NULL
    WITH t ORDER BY t.seen_at DESC, t.id LIMIT $runs
    RETURN {trajectory: t {.id, .instance_id, .repo, .task, .task_type, .outcome, .exit_status,
        .total_steps, .summary, .files, .agent, .model, .source_format, .source, .run_at,
        .learned_at}, fragments: COLLECT {
            MATCH (t)-[has:HAS_FRAGMENT]->(f:Fragment) WHERE f.outcome <> 'failed'
            RETURN f {.id, .trajectory_id, .start, .end, .fragment_type, .phase, .outcome,
                .description, .action_sequence, .files, .open_file, .repo, .task_type,
                order: has.order} ORDER BY has.order, f.id
        }} ORDER BY t.seen_at DESC, t.id
} AS past
ORDER BY repo


// name: errors_often_failed
// Errors at which more attempts failed than are kept.
UNWIND $ids AS id
MATCH (e:ErrorPattern {tenant: $tenant, id: id})
WHERE COUNT { (e)<-[:CAUSED_ERROR]-(:Fragment {fragment_type: 'failed_attempt'}) } > $keep
RETURN id

// name: failed_fragments
// Failed attempts at an error beyond the newest; none that cleared an error.
MATCH (:ErrorPattern {tenant: $tenant, id: $error_id})
    <-[:CAUSED_ERROR]-(f:Fragment {fragment_type: 'failed_attempt'})
WHERE NOT EXISTS { (f)-[:RECOVERED]->() }
WITH f ORDER BY f.seen_at DESC, f.id SKIP $keep LIMIT $limit
RETURN f.id AS id, f.trajectory_id AS trajectory_id, f.repo AS repo,
    COLLECT { MATCH (f)-[:TOUCHED]->(file:File) RETURN file.name } AS files

// name: drop_vectors_of_runs
// Let runs be embedded anew: they have other fragments by now.
UNWIND $ids AS id
CALL (id) {
    MATCH (t:Trajectory {tenant: $tenant, id: id})
    CALL (t) {
        UNWIND t.embedded AS property
        SET t[property] = null
        WITH t, property
        MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
        SET f[property] = null
    }
    SET t.embedded = []
}
