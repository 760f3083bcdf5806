// Runs: written with all that they teach, read back, taken away.

// name: begin_change
// Lock the memory until the change is committed: writers of one tenant queue, so that none of them
// waits for another in a circle, and revisions are committed in their order. Its identity tells a
// memory from one that is made in its place after all was deleted. (What it reads waits for what it
// writes: one node.)
MERGE (m:Memory {tenant: $tenant})
ON CREATE SET m.name = 'memory ' + $tenant, m.identity = randomUUID(), m.revision = 0,
    m.removals = 0, m.trajectories = 0, m.recoveries = 0, m.consolidated = 0
SET m.changed_at = datetime()
RETURN m.revision AS revision

// name: note_change
// The revision that a change makes, and how much there is after it.
MATCH (m:Memory {tenant: $tenant})
SET m.revision = m.revision + $revisions,
    m.removals = m.removals + $removals,
    m.trajectories = m.trajectories + $trajectories,
    m.recoveries = m.recoveries + $recoveries

// name: outcomes
// The outcomes of those runs that are known.
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
RETURN t.id AS id, t.outcome AS outcome

// name: add_trajectories
// New runs, and what they are read again from on a node of its own. What is created is written at
// once, here and below: what is set later another row might read, so that all rows would wait.
UNWIND $rows AS row
CREATE (:Trajectory {tenant: $tenant, id: row.id, name: row.name, instance_id: row.instance_id,
    repo: row.repo, task: row.task, task_type: row.task_type, outcome: row.outcome,
    success: row.success, solved: row.solved, exit_status: row.exit_status,
    total_steps: row.total_steps, summary: row.summary, files: row.files, agent: row.agent,
    model: row.model, source_format: row.source_format, source: row.source, run_at: row.run_at,
    learned_at: row.learned_at, seen_at: row.seen_at, words: row.words, revision: row.revision,
    embedded: []})
    -[:HAS_RAW_RUN]->(:RawRun {tenant: $tenant, id: row.id, name: 'raw run', data: row.data})

// name: set_outcomes
// Take over outcomes that were unknown.
UNWIND $rows AS row
MATCH (t:Trajectory {tenant: $tenant, id: row.id})
SET t.name = row.name, t.outcome = row.outcome, t.exit_status = row.exit_status,
    t.success = row.success, t.solved = row.solved, t.revision = row.revision

// name: add_fragments
UNWIND $rows AS row
MATCH (t:Trajectory {tenant: $tenant, id: row.trajectory_id})
CREATE (t)-[:HAS_FRAGMENT {order: row.order}]->(:Fragment {tenant: $tenant, id: row.id,
    name: row.name, order: row.order, start: row.start, end: row.end,
    fragment_type: row.fragment_type, phase: row.phase, outcome: row.outcome,
    description: row.description, action_sequence: row.action_sequence, files: row.files,
    open_file: row.open_file, repo: row.repo, task_type: row.task_type,
    trajectory_id: t.id, instance_id: t.instance_id, seen_at: t.seen_at})

// name: add_files
// The files that fragments touched, by the last part of their path.
UNWIND $rows AS row
MERGE (:File {tenant: $tenant, repo: row.repo, name: row.name})

// name: add_touched
// Where two nodes are looked up, here and below, the second is for each row by itself: looked up
// together, they would be a product of both.
UNWIND $rows AS row
MATCH (f:Fragment {tenant: $tenant, id: row.fragment_id})
CALL (row, f) {
    MATCH (file:File {tenant: $tenant, repo: row.repo, name: row.name})
    CREATE (f)-[:TOUCHED]->(file)
}

// name: add_errors
UNWIND $rows AS row
MERGE (e:ErrorPattern {tenant: $tenant, id: row.id})
ON CREATE SET e += row

// name: add_met
// How a run met an error, in its words; the error is told in those of the run of least id.
UNWIND $rows AS row
MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
CALL (row, e) {
    MATCH (t:Trajectory {tenant: $tenant, id: row.trajectory_id})
    CREATE (t)-[:MET {tenant: $tenant, repo: t.repo, fingerprint: e.fingerprint,
        trajectory_id: t.id, instance_id: t.instance_id, seen_at: t.seen_at,
        steps: row.steps, cleared: row.cleared, keywords: row.keywords, context: row.context}]->(e)
}

// name: tell_errors
// Errors in the words of those runs that have a lesser id than whose words they had.
UNWIND $rows AS row
CALL (row) {
    MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
    WHERE e.told_by IS NULL OR row.trajectory_id < e.told_by
    SET e.told_by = row.trajectory_id, e.keywords = row.keywords, e.context = row.context
}

// name: add_caused
UNWIND $rows AS row
MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
CALL (row, e) {
    MATCH (f:Fragment {tenant: $tenant, id: row.fragment_id})
    CREATE (f)-[:CAUSED_ERROR {tenant: $tenant, repo: f.repo, phase: f.phase,
        trajectory_id: f.trajectory_id, instance_id: f.instance_id, seen_at: f.seen_at,
        steps: row.steps, locations: row.locations}]->(e)
}

// name: add_recovered
UNWIND $rows AS row
MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
CALL (row, e) {
    MATCH (f:Fragment {tenant: $tenant, id: row.fragment_id})
    CREATE (f)-[:RECOVERED {tenant: $tenant, repo: f.repo, words: row.words, family: e.family,
        error_type: e.error_type, fingerprint: e.fingerprint, trajectory_id: f.trajectory_id,
        instance_id: f.instance_id, seen_at: f.seen_at, error_step: row.error_step,
        cleared_step: row.cleared_step, message: row.message, location: row.location,
        what: row.what, actions: row.actions, verified: row.verified,
        workaround: row.workaround}]->(e)
}

// name: learned
// What is held of runs.
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
OPTIONAL MATCH (m:Memory {tenant: $tenant})
OPTIONAL MATCH (s:Space {tenant: $tenant, name: m.active_space})
RETURN id, t.outcome AS outcome, COUNT { (t)-[:HAS_FRAGMENT]->() } AS fragments,
    COUNT { (t)-[:MET]->() } AS errors, coalesce(s.property IN t.embedded, false) AS embedded
ORDER BY id

// name: trajectory
MATCH (t:Trajectory {tenant: $tenant, id: $id})
RETURN t {.id, .instance_id, .repo, .task, .task_type, .outcome, .exit_status, .total_steps,
    .summary, .files, .agent, .model, .source_format, .source, .run_at, .learned_at} AS trajectory

// name: trajectory_ids
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.id IS NOT NULL
RETURN t.id AS id ORDER BY t.tenant, t.id

// name: raw_trajectory
MATCH (t:Trajectory {tenant: $tenant, id: $id})-[:HAS_RAW_RUN]->(r:RawRun)
RETURN r.data AS data, t.outcome AS outcome, t.exit_status AS exit_status

// name: fragments_of
UNWIND $ids AS id
MATCH (:Trajectory {tenant: $tenant, id: id})-[:HAS_FRAGMENT]->(f:Fragment)
WITH f ORDER BY f.trajectory_id, f.order, f.id
RETURN collect([f.trajectory_id, f.id]) AS found

// name: fragments_of_run
MATCH (:Trajectory {tenant: $tenant, id: $id})-[:HAS_FRAGMENT]->(f:Fragment)
RETURN f {.id, .order, .trajectory_id, .start, .end, .fragment_type, .phase, .outcome, .description,
    .action_sequence, .files, .open_file, .repo, .task_type} AS fragment
ORDER BY f.order, f.id

// name: parts_of
// What goes with runs: the errors and files that may be left without one, and recoveries.
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
RETURN t.id AS id,
    COLLECT { MATCH (t)-[:MET]->(e:ErrorPattern) RETURN e.id } AS errors,
    COLLECT { MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment) RETURN f.id } AS fragments,
    COUNT { (t)-[:HAS_FRAGMENT]->()-[:RECOVERED]->() } AS recoveries,
    COLLECT { MATCH (t)-[:HAS_FRAGMENT]->()-[:TOUCHED]->(file:File) RETURN DISTINCT file.name }
        AS files,
    t.repo AS repo

// name: remove_fragments
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.id IN $ids
DETACH DELETE f

// name: remove_raw_runs
MATCH (r:RawRun)
WHERE r.tenant = $tenant AND r.id IN $ids
DETACH DELETE r

// name: remove_trajectories
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.id IN $ids
DETACH DELETE t

// name: remove_unmet_errors
// Errors that no run met any more. Here and below rows are told by number: what is unwound might be
// a node, for all that is known of it, so that all rows would wait before one is deleted.
UNWIND range(0, size($ids) - 1) AS number
CALL (number) {
    MATCH (e:ErrorPattern {tenant: $tenant, id: $ids[number]})
    WHERE NOT EXISTS { (e)<-[:MET]-() }
    DETACH DELETE e
}

// name: remove_untouched_files
UNWIND range(0, size($rows) - 1) AS number
CALL (number) {
    MATCH (file:File {tenant: $tenant, repo: $rows[number].repo, name: $rows[number].name})
    WHERE NOT EXISTS { (file)<-[:TOUCHED]-() }
    DELETE file
}

// name: tell_errors_anew
// Errors whose run of least id is gone, in the words of the next.
UNWIND $ids AS id
CALL (id) {
    MATCH (e:ErrorPattern {tenant: $tenant, id: id})
    WHERE NOT EXISTS { (e)<-[:MET {trajectory_id: e.told_by}]-() }
    MATCH (e)<-[m:MET]-()
    WITH e, m ORDER BY m.trajectory_id LIMIT 1
    SET e.told_by = m.trajectory_id, e.keywords = m.keywords, e.context = m.context
}
