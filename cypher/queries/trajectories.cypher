// Runs: written with all that they teach, read back, taken away.

// name: begin_change
// Lock the memory until the change is committed: writers of one tenant queue, so that none of them
// waits for another in a circle, and revisions are committed in their order.
MERGE (m:Memory {tenant: $tenant})
ON CREATE SET m.name = 'memory ' + $tenant, m.revision = 0, m.removals = 0,
    m.trajectories = 0, m.recoveries = 0, m.consolidated = 0
SET m.changed_at = datetime(), m.changes = coalesce(m.changes, 0) + 1
RETURN m.revision AS revision

// name: note_change
// The revision that a change makes, and how much there is after it.
MATCH (m:Memory {tenant: $tenant})
SET m.revision = m.revision + $revisions,
    m.removals = m.removals + $removals,
    m.trajectories = m.trajectories + $trajectories,
    m.recoveries = m.recoveries + $recoveries
RETURN m.revision AS revision

// name: outcomes
// The outcomes of those runs that are known.
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
RETURN t.id AS id, t.outcome AS outcome

// name: add_trajectories
// New runs, and what they are read again from on a node of its own.
UNWIND $rows AS row
CREATE (t:Trajectory {tenant: $tenant, id: row.node.id})
SET t += row.node, t.words = row.words, t.revision = row.revision, t.embedded = []
CREATE (t)-[:HAS_RAW_RUN]->(r:RawRun {tenant: $tenant, id: row.node.id})
SET r.name = 'raw run', r.data = row.data

// name: set_outcomes
// Take over outcomes that were unknown.
UNWIND $rows AS row
MATCH (t:Trajectory {tenant: $tenant, id: row.id})
SET t += row.node, t.revision = row.revision

// name: add_fragments
UNWIND $rows AS row
MATCH (t:Trajectory {tenant: $tenant, id: row.trajectory_id})
CREATE (t)-[:HAS_FRAGMENT {order: row.node.order}]->(f:Fragment {tenant: $tenant, id: row.node.id})
SET f += row.node, f.trajectory_id = t.id, f.instance_id = t.instance_id, f.seen_at = t.seen_at

// name: add_files
// The files that fragments touched, by the last part of their path.
UNWIND $rows AS row
MERGE (:File {tenant: $tenant, repo: row.repo, name: row.name})

// name: add_touched
UNWIND $rows AS row
MATCH (f:Fragment {tenant: $tenant, id: row.fragment_id})
MATCH (file:File {tenant: $tenant, repo: row.repo, name: row.name})
CREATE (f)-[:TOUCHED]->(file)

// name: add_errors
UNWIND $rows AS row
MERGE (e:ErrorPattern {tenant: $tenant, id: row.id})
ON CREATE SET e += row

// name: add_met
// How a run met an error, in its words; the error is told in those of the run of least id.
UNWIND $rows AS row
MATCH (t:Trajectory {tenant: $tenant, id: row.trajectory_id})
MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
CREATE (t)-[m:MET {tenant: $tenant, repo: t.repo}]->(e)
SET m.fingerprint = e.fingerprint, m.trajectory_id = t.id, m.instance_id = t.instance_id,
    m.seen_at = t.seen_at, m.steps = row.steps, m.cleared = row.cleared,
    m.keywords = row.keywords, m.context = row.context

// name: tell_errors
// Errors in the words of those runs that have a lesser id than whose words they had.
UNWIND $rows AS row
MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
WHERE e.told_by IS NULL OR row.trajectory_id < e.told_by
SET e.told_by = row.trajectory_id, e.keywords = row.keywords, e.context = row.context

// name: add_caused
UNWIND $rows AS row
MATCH (f:Fragment {tenant: $tenant, id: row.fragment_id})
MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
CREATE (f)-[c:CAUSED_ERROR {tenant: $tenant, repo: f.repo, phase: f.phase}]->(e)
SET c += row.edge, c.trajectory_id = f.trajectory_id, c.instance_id = f.instance_id,
    c.seen_at = f.seen_at

// name: add_recovered
UNWIND $rows AS row
MATCH (f:Fragment {tenant: $tenant, id: row.fragment_id})
MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
CREATE (f)-[r:RECOVERED {tenant: $tenant, repo: f.repo}]->(e)
SET r += row.edge, r.words = row.words, r.family = e.family, r.error_type = e.error_type,
    r.fingerprint = e.fingerprint, r.trajectory_id = f.trajectory_id,
    r.instance_id = f.instance_id, r.seen_at = f.seen_at

// name: learned
// What is held of a run.
MATCH (t:Trajectory {tenant: $tenant, id: $id})
OPTIONAL MATCH (m:Memory {tenant: $tenant})
OPTIONAL MATCH (s:Space {tenant: $tenant, name: m.active_space})
RETURN t.outcome AS outcome, COUNT { (t)-[:HAS_FRAGMENT]->() } AS fragments,
    COUNT { (t)-[:MET]->() } AS errors, coalesce(s.property IN t.embedded, false) AS embedded

// name: trajectory
MATCH (t:Trajectory {tenant: $tenant, id: $id})
RETURN t {.id, .instance_id, .repo, .task, .task_type, .outcome, .exit_status, .total_steps,
    .summary, .files, .agent, .model, .source_format, .source, .run_at, .learned_at} AS trajectory

// name: trajectory_ids
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.id IS NOT NULL
RETURN t.id AS id ORDER BY t.tenant, t.id

// name: raw_trajectory
MATCH (t:Trajectory {tenant: $tenant, id: $id})
MATCH (r:RawRun {tenant: $tenant, id: $id})
RETURN r.data AS data, t.outcome AS outcome, t.exit_status AS exit_status

// name: fragments_of
UNWIND $ids AS id
MATCH (:Trajectory {tenant: $tenant, id: id})-[:HAS_FRAGMENT]->(f:Fragment)
RETURN f {.id, .order, .trajectory_id, .start, .end, .fragment_type, .phase, .outcome, .description,
    .action_sequence, .files, .open_file, .repo, .task_type} AS fragment
ORDER BY f.trajectory_id, f.order, f.id

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
UNWIND $ids AS id
MATCH (f:Fragment {tenant: $tenant, id: id})
DETACH DELETE f

// name: remove_trajectories
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
MATCH (r:RawRun {tenant: $tenant, id: id})
DETACH DELETE t, r

// name: remove_unmet_errors
// Errors that no run met any more.
UNWIND $ids AS id
MATCH (e:ErrorPattern {tenant: $tenant, id: id})
WHERE NOT EXISTS { (e)<-[:MET]-() }
DETACH DELETE e

// name: remove_untouched_files
UNWIND $rows AS row
MATCH (file:File {tenant: $tenant, repo: row.repo, name: row.name})
WHERE NOT EXISTS { (file)<-[:TOUCHED]-() }
DELETE file

// name: tell_errors_anew
// Errors whose run of least id is gone, in the words of the next.
UNWIND $ids AS id
MATCH (e:ErrorPattern {tenant: $tenant, id: id})
WHERE NOT EXISTS { (e)<-[:MET {trajectory_id: e.told_by}]-() }
CALL (e) {
    MATCH (e)<-[m:MET]-()
    RETURN m ORDER BY m.trajectory_id LIMIT 1
}
SET e.told_by = m.trajectory_id, e.keywords = m.keywords, e.context = m.context
