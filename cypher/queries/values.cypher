// What is remembered of a memory by those who read it, and for how long.

// name: memory_state
// How far a memory is, how much it holds, and the space that answers.
MATCH (m:Memory {tenant: $tenant})
OPTIONAL MATCH (s:Space {tenant: $tenant, name: m.active_space})
RETURN coalesce(m.identity, '') AS identity, m.revision AS revision, m.removals AS removals,
    coalesce(m.embeddings, 0) AS embeddings, m.trajectories AS trajectories,
    m.recoveries AS recoveries, coalesce(m.is_retold, false) AS is_retold,
    s {.name, .runs, .alike, .property} AS space

// name: runs_changed_since
// Runs that were learned or changed after a revision, and the errors they may tell otherwise.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.revision > $revision
WITH t LIMIT $limit
RETURN t.id AS id, COLLECT { MATCH (t)-[:MET]->(e:ErrorPattern) RETURN e.id } AS errors

// name: values_of
// Runs, fragments, recoveries and errors, all that is missing at once.
UNWIND $trajectories AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
RETURN 'trajectory' AS kind, [id] AS key,
    t {.id, .instance_id, .repo, .task, .task_type, .outcome, .exit_status, .total_steps,
    .summary, .files, .agent, .model, .source_format, .source, .run_at, .learned_at} AS value
UNION ALL
UNWIND $fragments AS id
MATCH (f:Fragment {tenant: $tenant, id: id})
RETURN 'fragment' AS kind, [f.trajectory_id, id] AS key,
    f {.id, .order, .trajectory_id, .start, .end, .fragment_type, .phase, .outcome, .description,
    .action_sequence, .files, .open_file, .repo, .task_type} AS value
UNION ALL
UNWIND $recoveries AS row
MATCH (:Fragment {tenant: $tenant, id: row.fragment_id})
    -[r:RECOVERED {error_step: row.error_step}]->
    (:ErrorPattern {tenant: $tenant, id: row.error_id})
RETURN 'recovery' AS kind,
    [r.trajectory_id, row.fragment_id, row.error_id, row.error_step] AS key,
    r {.error_step, .cleared_step, .message, .location, .what, .actions, .verified,
    .workaround} AS value
UNION ALL
UNWIND $errors AS id
MATCH (e:ErrorPattern {tenant: $tenant, id: id})
RETURN 'error' AS kind, [id] AS key,
    e {.id, .family, .error_type, .template, .keywords, .context} AS value
