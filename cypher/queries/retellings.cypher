// What a language model made of runs, beside what they tell themselves.

// name: retellings_of
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
WHERE t.retold_by IS NOT NULL
RETURN id, t.retold_by AS made_by, t.retold_from AS told, coalesce(t.retold, '') AS summary,
    COLLECT {
        MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment) WHERE f.retold IS NOT NULL RETURN [f.id, f.retold]
    } AS descriptions
ORDER BY id

// name: put_retellings
UNWIND $rows AS row
CALL (row) {
    MATCH (t:Trajectory {tenant: $tenant, id: row.id})
    SET t.retold = row.summary, t.retold_by = row.made_by, t.retold_from = row.told
    WITH t, row
    MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
    SET f.retold = row.descriptions[f.id]
}

// name: note_retold
// From now on runs are asked for what a model made of them.
MATCH (m:Memory {tenant: $tenant})
SET m.is_retold = true

// name: runs_to_retell
// Runs that this model and prompt have not told, the newest first.
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.id IS NOT NULL AND (t.retold_by IS NULL OR t.retold_by <> $made_by)
RETURN t.id AS id ORDER BY t.seen_at DESC, t.id
