// What a process caches of a memory, and for how long that is valid.

// name: memory_state
// The revision of a memory, how much it holds, how probable its remedies are, and the active space.
MATCH (m:Memory {tenant: $tenant})
OPTIONAL MATCH (s:Space {tenant: $tenant, name: m.active_space})
RETURN coalesce(m.identity, '') AS identity, m.revision AS revision, m.removals AS removals,
    m.trajectories AS trajectories, m.recoveries AS recoveries, m.gate AS gate,
    s {.name, .runs, .similarity_threshold, .property} AS space

// name: runs_changed_since
// Runs that were learned or changed after a revision.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.revision > $revision
WITH t LIMIT $limit
RETURN t.id AS id

// name: values_of
// Runs, fragments and recoveries by key: all that is not cached, in one query.
UNWIND $trajectories AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
RETURN 'trajectory' AS kind, [id] AS key,
    t {.id, .instance_id, .repo, .task, .task_type, .outcome, .exit_status, .total_steps,
    .summary, .files, .agent, .model, .source_format, .source, .run_at, .learned_at,
    .outcome_source, .change, .contributor} AS value
UNION ALL
UNWIND $fragments AS id
MATCH (f:Fragment {tenant: $tenant, id: id})
RETURN 'fragment' AS kind, [f.trajectory_id, id] AS key,
    f {.id, .order, .trajectory_id, .start, .end, .fragment_type, .phase, .outcome, .description,
    .action_sequence, .files, .open_file, .repo, .task_type, .loop_kind,
    .loop_command, .repetitions, .loop_ending} AS value
UNION ALL
UNWIND $recoveries AS row
MATCH (t:Trajectory {tenant: $tenant, id: row.trajectory_id})
MATCH (:Fragment {tenant: $tenant, id: row.fragment_id})
    -[r:RECOVERED {error_step: row.error_step}]->
    (e:ErrorPattern {tenant: $tenant, id: row.error_id})
RETURN 'recovery' AS kind,
    [t.id, row.fragment_id, row.error_id, row.error_step] AS key,
    {fragment_id: row.fragment_id,
    recovered: r {.error_step, .cleared_step, .message, .location, .actions, .verified,
    .workaround, .circumstances, .scored_words},
    error: e {.id, .family, .error_type, .template},
    run: t {.id, .instance_id, .repo, .contributor, .agent, .seen_at}} AS value
