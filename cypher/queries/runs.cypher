// Runs: written with all that they teach, read, removed. Queries find keys (see `values_of`); the scope
// is part of each match, and orders follow an index as far as it goes: an index is read in its order
// only where all its leading properties are given: what ends with `in_repo` or `everywhere` is part of the
// form of a query for one repository, or for all of them.

// name: begin_change
// Lock the memory until the change is committed: writers of one tenant queue, so that they cannot
// deadlock, and revisions are committed in order. The identity distinguishes a memory from one that is
// created in its place after all was deleted. (Eager, but over one node.)
MERGE (m:Memory {tenant: $tenant})
ON CREATE SET m.name = 'memory ' + $tenant, m.identity = randomUUID(), m.revision = 0,
    m.removals = 0, m.trajectories = 0, m.recoveries = 0, m.consolidated = 0
SET m.changed_at = datetime()
RETURN m.revision AS revision

// name: note_change
// The revision after a change, and the new totals.
MATCH (m:Memory {tenant: $tenant})
SET m.revision = m.revision + $revisions,
    m.removals = m.removals + $removals,
    m.trajectories = m.trajectories + $trajectories,
    m.recoveries = m.recoveries + $recoveries

// name: add_trajectories
// New runs, with their packed raw run on a node of its own. Properties are written by CREATE, here and
// below: what SET writes another row might read, so that the plan would be Eager.
UNWIND $rows AS row
CREATE (:Trajectory {tenant: $tenant, id: row.id, name: row.name, instance_id: row.instance_id,
    repo: row.repo, task: row.task, task_type: row.task_type, outcome: row.outcome,
    outcome_source: row.outcome_source, change: row.change, success: row.success,
    solved: row.solved, exit_status: row.exit_status, total_steps: row.total_steps,
    summary: row.summary, files: row.files, agent: row.agent, model: row.model,
    source_format: row.source_format, source: row.source, contributor: row.contributor,
    run_at: row.run_at,
    learned_at: row.learned_at, seen_at: row.seen_at, words: row.words, revision: row.revision,
    embedded: []})
    -[:HAS_RAW_RUN]->(:RawRun {tenant: $tenant, id: row.id, name: 'raw run', data: row.data,
    facts: row.facts, openings: row.openings})

// name: set_outcomes
// New outcomes of runs.
UNWIND $rows AS row
MATCH (t:Trajectory {tenant: $tenant, id: row.id})
SET t.name = row.name, t.outcome = row.outcome, t.outcome_source = row.outcome_source,
    t.exit_status = row.exit_status, t.change = row.change,
    t.success = row.success, t.solved = row.solved, t.revision = row.revision

// name: add_fragments
UNWIND $rows AS row
MATCH (t:Trajectory {tenant: $tenant, id: row.trajectory_id})
CREATE (t)-[:HAS_FRAGMENT {order: row.order}]->(:Fragment {tenant: $tenant, id: row.id,
    name: row.name, order: row.order, start: row.start, end: row.end,
    fragment_type: row.fragment_type, phase: row.phase, outcome: row.outcome,
    description: row.description, action_sequence: row.action_sequence, files: row.files,
    open_file: row.open_file, repo: row.repo, task_type: row.task_type,
    loop_kind: row.loop_kind, loop_command: row.loop_command, repetitions: row.repetitions,
    loop_ending: row.loop_ending,
    trajectory_id: t.id, instance_id: t.instance_id, seen_at: t.seen_at})

// name: add_files
// The files that fragments touched, by the last part of their path.
UNWIND $rows AS row
MERGE (:File {tenant: $tenant, repo: row.repo, name: row.name})

// name: add_touched
// Where two nodes are looked up, here and below, the second is looked up in a subquery: together they
// would be a CartesianProduct.
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
// How a run met an error: keywords and message are those of this run.
UNWIND $rows AS row
MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
CALL (row, e) {
    MATCH (t:Trajectory {tenant: $tenant, id: row.trajectory_id})
    CREATE (t)-[:MET {tenant: $tenant, repo: t.repo, fingerprint: e.fingerprint,
        trajectory_id: t.id, instance_id: t.instance_id, seen_at: t.seen_at,
        steps: row.steps, cleared: row.cleared, keywords: row.keywords, context: row.context}]->(e)
}

// name: describe_errors
// The keywords and the message of an error are those of the run with the least id that met it.
UNWIND $rows AS row
CALL (row) {
    MATCH (e:ErrorPattern {tenant: $tenant, id: row.error_id})
    WHERE e.described_by IS NULL OR row.trajectory_id < e.described_by
    SET e.described_by = row.trajectory_id, e.keywords = row.keywords, e.context = row.context
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
        description: row.description, actions: row.actions, verified: row.verified,
        workaround: row.workaround, circumstances: row.circumstances,
        scored_words: row.scored_words}]->(e)
}

// name: learned
// What is stored of runs, which may be requested by a former id.
UNWIND $ids AS id
OPTIONAL MATCH (a:FormerId {tenant: $tenant, id: id})
WITH id, coalesce(a.trajectory_id, id) AS run
MATCH (t:Trajectory {tenant: $tenant, id: run})
OPTIONAL MATCH (m:Memory {tenant: $tenant})
OPTIONAL MATCH (s:Space {tenant: $tenant, name: m.active_space})
RETURN id, run, t.outcome AS outcome, coalesce(t.outcome_source, 'log') AS outcome_source,
    t.exit_status AS exit_status, coalesce(t.change, 'unknown') AS change,
    COUNT { (t)-[:HAS_FRAGMENT]->() } AS fragments, COUNT { (t)-[:MET]->() } AS errors, coalesce(s.property IN t.embedded, false) AS embedded
ORDER BY id

// name: note_former_ids
// Former ids of runs, which also take over the former ids of those.
UNWIND $rows AS row
MERGE (a:FormerId {tenant: $tenant, id: row.former})
SET a.name = row.former, a.trajectory_id = row.now
WITH row
MATCH (b:FormerId {tenant: $tenant, trajectory_id: row.former})
SET b.trajectory_id = row.now

// name: remove_former_ids
MATCH (a:FormerId)
WHERE a.tenant = $tenant AND a.trajectory_id IN $ids
DETACH DELETE a

// name: trajectories
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
RETURN t {.id, .instance_id, .repo, .task, .task_type, .outcome, .exit_status, .total_steps,
    .summary, .files, .agent, .model, .source_format, .source, .run_at, .learned_at,
    .outcome_source, .change, .contributor} AS trajectory
ORDER BY id

// name: trajectory_ids
// The ids of all runs after one, or of those of a repository or an instance.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.id > $after
    AND ($repo IS NULL OR t.repo = $repo) AND ($instance IS NULL OR t.instance_id = $instance)
WITH t ORDER BY t.tenant, t.id LIMIT $limit
// A run that is forgotten while this reads has lost its id, not yet its row: not collected.
RETURN collect(t.id) AS found

// name: raw_trajectory
MATCH (t:Trajectory {tenant: $tenant, id: $id})-[:HAS_RAW_RUN]->(r:RawRun)
RETURN r.data AS data

// name: opened
// The runs of sessions that begin with one of the given histories.
MATCH (r:RawRun {tenant: $tenant})
WHERE any(opening IN r.openings WHERE opening IN $digests)
WITH r.id AS id ORDER BY id LIMIT $limit
RETURN collect(id) AS found

// name: facts_of
// What runs show of their project and machine, as JSON.
UNWIND $ids AS id
MATCH (r:RawRun {tenant: $tenant, id: id})
RETURN id, r.facts AS facts
ORDER BY id

// name: fragments_of
UNWIND $ids AS id
MATCH (:Trajectory {tenant: $tenant, id: id})-[:HAS_FRAGMENT]->(f:Fragment)
WITH f ORDER BY f.trajectory_id, f.order, f.id
RETURN collect([f.trajectory_id, f.id]) AS found

// name: parts_of
// What is removed with runs: the errors and files that may be left without a run, and recoveries.
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
// Errors that no run met any more. Rows are addressed by number, here and below: what is unwound might
// be a node, as far as the planner knows, so that the plan would be Eager.
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

// name: describe_errors_again
// Keywords and message of errors whose run with the least id is gone: those of the next run.
UNWIND $ids AS id
CALL (id) {
    MATCH (e:ErrorPattern {tenant: $tenant, id: id})
    WHERE NOT EXISTS { (e)<-[:MET {trajectory_id: e.described_by}]-() }
    MATCH (e)<-[m:MET]-()
    WITH e, m ORDER BY m.trajectory_id LIMIT 1
    SET e.described_by = m.trajectory_id, e.keywords = m.keywords, e.context = m.context
}

// name: trajectories_listed
// Runs that a person lists, in the order that they chose.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant
    AND t.repo = $repo // in_repo
    AND t.solved IS NOT NULL AND t.seen_at IS NOT NULL AND t.task_type IS NOT NULL
    AND ($agent = '' OR t.agent = $agent)
    AND ($outcome IS NULL OR t.outcome = $outcome)
    AND ($since IS NULL OR t.seen_at >= $since)
WITH t
ORDER BY CASE $order WHEN 'newest' THEN t.seen_at WHEN 'steps' THEN t.total_steps END DESC,
    CASE $order WHEN 'instance' THEN t.instance_id WHEN 'repo' THEN t.repo
        WHEN 'agent' THEN t.agent WHEN 'outcome' THEN t.outcome END,
    t.id
SKIP $skip
LIMIT $limit
RETURN collect(t.id) AS found

// name: trajectories_for_task
// Runs of some types of task, solved ones first, then the newest.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant
    AND t.repo = $repo // in_repo
    AND t.solved IS NOT NULL AND t.seen_at IS NOT NULL AND t.task_type IN $task_types
    AND ($agent IS NULL OR t.agent = $agent)
    AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t
ORDER BY t.tenant DESC,
    t.repo DESC, // in_repo
    t.solved DESC, t.seen_at DESC, t.id
LIMIT $limit
RETURN collect(t.id) AS found

// name: repositories_listed
// Repositories and how many runs each has.
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.id > '' AND t.repo > '' AND t.repo CONTAINS $text
WITH t.repo AS repo, count(*) AS runs
RETURN repo, runs ORDER BY runs DESC, repo SKIP $skip LIMIT $limit

// name: trajectories_for_text
// Runs by the sum of the weights of their words; each word is searched within the scope.
UNWIND $words AS word
CALL db.index.fulltext.queryNodes('trajectory_words', word.query) YIELD node AS t
WITH t, sum(word.weight) AS relevance
WHERE t.tenant = $tenant AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t, relevance
ORDER BY relevance DESC, t.id LIMIT $limit
RETURN collect(t.id) AS found

// name: trajectory_word_counts
// In how many runs each word occurs.
UNWIND $words AS word
CALL (word) {
    CALL db.index.fulltext.queryNodes('trajectory_words', word.query) YIELD node
    RETURN count(*) AS count
}
RETURN word.word AS word, count

// name: fragments_at_file
// Fragments that touched a file of this name, those of the newest run first.
MATCH (file:File {tenant: $tenant, name: $file_name})<-[:TOUCHED]-(f:Fragment)
WHERE f.phase IN $phases AND ($loop_command IS NULL OR f.loop_command = $loop_command)
    AND file.repo = $repo // in_repo
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f
ORDER BY f.seen_at DESC, f.id LIMIT $limit
RETURN collect([f.trajectory_id, f.id]) AS found

// name: fragments
// Fragments of some phases, those of the newest run first.
MATCH (f:Fragment)
WHERE f.tenant = $tenant
    AND f.repo = $repo // in_repo
    AND f.seen_at IS NOT NULL AND f.phase IN $phases
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f
ORDER BY f.tenant DESC,
    f.repo DESC, // in_repo
    f.seen_at DESC, f.id LIMIT $limit
RETURN collect([f.trajectory_id, f.id]) AS found

// name: loop_fragments
// Loops of a command, those of the newest run first.
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.loop_command = $loop_command AND f.seen_at IS NOT NULL
    AND f.phase IN $phases
    AND ($repo IS NULL OR f.repo = $repo)
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f
ORDER BY f.tenant DESC, f.loop_command DESC, f.seen_at DESC, f.id LIMIT $limit
RETURN collect([f.trajectory_id, f.id]) AS found

// name: archived_run
// All that is stored of a run; errors as this run met them.
MATCH (t:Trajectory {tenant: $tenant, id: $id})
RETURN
    COLLECT {
        MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
        RETURN f {.id, .order, .trajectory_id, .start, .end, .fragment_type, .phase, .outcome, .description,
            .action_sequence, .files, .open_file, .repo, .task_type, .loop_kind, .loop_command,
            .repetitions, .loop_ending}
        ORDER BY f.order, f.id
    } AS fragments,
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
        RETURN [f.id, e.id, r {.error_step, .cleared_step, .message, .location, .actions, .verified,
            .workaround, .circumstances}]
        ORDER BY r.error_step, f.id, e.id
    } AS recovered
