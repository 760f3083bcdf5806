// Recoveries, and how often errors occur. Queries find keys (see `values_of`).

// name: recoveries_for_error
// Recoveries from the error of each question: by its template, type or family, in a repository or
// in all. Each form has an index that follows its order.
UNWIND $template_in_repo AS question
CALL (question) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.repo = question.repo AND r.fingerprint = question.fingerprint
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (question.as_of IS NULL OR r.seen_at <= question.as_of)
        AND NOT r.instance_id IN question.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.repo DESC, r.fingerprint DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN question.number AS number, found
UNION ALL
UNWIND $template_everywhere AS question
CALL (question) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.fingerprint = question.fingerprint
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (question.as_of IS NULL OR r.seen_at <= question.as_of)
        AND NOT r.instance_id IN question.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.fingerprint DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN question.number AS number, found
UNION ALL
UNWIND $type_in_repo AS question
CALL (question) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.repo = question.repo AND r.family = question.family
        AND r.error_type = question.error_type
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (question.as_of IS NULL OR r.seen_at <= question.as_of)
        AND NOT r.instance_id IN question.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.repo DESC, r.family DESC, r.error_type DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN question.number AS number, found
UNION ALL
UNWIND $type_everywhere AS question
CALL (question) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.family = question.family
        AND r.error_type = question.error_type
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (question.as_of IS NULL OR r.seen_at <= question.as_of)
        AND NOT r.instance_id IN question.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.family DESC, r.error_type DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN question.number AS number, found
UNION ALL
UNWIND $family_in_repo AS question
CALL (question) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.repo = question.repo AND r.family = question.family
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (question.as_of IS NULL OR r.seen_at <= question.as_of)
        AND NOT r.instance_id IN question.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.repo DESC, r.family DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN question.number AS number, found
UNION ALL
UNWIND $family_everywhere AS question
CALL (question) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.family = question.family
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (question.as_of IS NULL OR r.seen_at <= question.as_of)
        AND NOT r.instance_id IN question.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.family DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN question.number AS number, found

// name: recoveries_for_text
// Recoveries by the sum of the weights of their words; each word is searched within the scope.
UNWIND $words AS word
CALL db.index.fulltext.queryRelationships('recovered_words', word.query) YIELD relationship AS r
WITH r, sum(word.weight) AS relevance
WHERE r.tenant = $tenant AND ($as_of IS NULL OR r.seen_at <= $as_of)
    AND NOT r.instance_id IN $excluded
MATCH (f:Fragment)-[r]->(e:ErrorPattern)
WITH f, r, e, relevance
ORDER BY relevance DESC, f.id, e.id, r.error_step LIMIT $limit
RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found

// name: recoveries_of_fragments
// The recoveries of some fragments.
UNWIND $ids AS id
MATCH (f:Fragment {tenant: $tenant, id: id})-[r:RECOVERED]->(e:ErrorPattern)
WITH f, r, e
ORDER BY f.id, e.id, r.error_step
RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found

// name: recovered_word_counts
// In how many recoveries each word occurs. The full-text query includes the term of the tenant:
// filtering the results by tenant takes half as long again.
UNWIND $words AS word
CALL (word) {
    CALL db.index.fulltext.queryRelationships('recovered_words', word.query) YIELD relationship
    RETURN count(*) AS count
}
RETURN word.word AS word, count

// name: error_histories
// The newest runs that met each error, and how they cleared it.
UNWIND $ids AS id
MATCH (e:ErrorPattern {tenant: $tenant, id: id})
RETURN e {.id, .family, .error_type, .template, .keywords, .context} AS error, COLLECT {
    MATCH (e)<-[m:MET]-(t:Trajectory)
    WHERE $repo IS NULL OR m.repo = $repo
    WITH m, t ORDER BY m.seen_at DESC, t.id LIMIT $runs
    RETURN {trajectory_id: t.id, repo: t.repo, task_type: t.task_type, outcome: t.outcome,
        seen_at: t.seen_at, instance_id: t.instance_id, contributor: t.contributor,
        message: m.context, cleared: COLLECT {
            MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)-[r:RECOVERED]->(e)
            RETURN [f.id, f.phase, r {.error_step, .cleared_step, .message, .location, .actions,
                .verified, .workaround, .circumstances}]
        }} ORDER BY m.seen_at DESC, t.id
} AS met
ORDER BY error.id

// name: common_errors
// Errors that most runs met.
MATCH (:Trajectory)-[m:MET]->(e:ErrorPattern)
WHERE m.tenant = $tenant AND m.fingerprint IS NOT NULL AND m.seen_at IS NOT NULL
    AND m.repo = $repo // in_repo
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

// name: common_errors_in_phase
// Errors that most runs met in one phase.
MATCH (:Fragment)-[c:CAUSED_ERROR]->(e:ErrorPattern)
WHERE c.tenant = $tenant AND c.phase = $phase
    AND c.repo = $repo // in_repo
    AND c.repo IS NOT NULL // everywhere
    AND ($as_of IS NULL OR c.seen_at <= $as_of)
    AND NOT c.instance_id IN $excluded
    AND ($ids IS NULL OR c.trajectory_id IN $ids)
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

// name: errors_of_runs
// Errors that some runs met, those of most of them first.
UNWIND $ids AS id
MATCH (:Trajectory {tenant: $tenant, id: id})-[m:MET]->(e:ErrorPattern)
WHERE ($repo IS NULL OR m.repo = $repo) AND ($as_of IS NULL OR m.seen_at <= $as_of)
    AND NOT m.instance_id IN $excluded
WITH e, m ORDER BY m.seen_at DESC, m.trajectory_id
WITH e, count(*) AS runs, sum(m.steps) AS steps,
    sum(CASE WHEN m.cleared THEN 1 ELSE 0 END) AS cleared,
    collect(m.trajectory_id)[..$most] AS trajectories
ORDER BY runs DESC, e.id LIMIT $limit
RETURN e {.id, .family, .error_type, .template, .keywords, .context} AS error,
    runs, steps, cleared, trajectories
ORDER BY runs DESC, e.id

// name: error_steps
// The steps at which fragments met errors, by run.
MATCH (e:ErrorPattern {tenant: $tenant})<-[c:CAUSED_ERROR]-(f:Fragment)
WHERE e.id IS NOT NULL
WITH c.trajectory_id AS run, f, e, c ORDER BY run, f.id, e.id
RETURN run, collect([f.id, e.id, e.error_type, c.steps]) AS met
ORDER BY run

// name: similar_of_run
// The SIMILAR_TO edges of the fragments of a run.
MATCH (:Trajectory {tenant: $tenant, id: $id})-[:HAS_FRAGMENT]->(f:Fragment)
    -[s:SIMILAR_TO]->(r:Fragment)
RETURN s.error_id AS error_id, f.trajectory_id AS run, f.id AS fragment,
    r.trajectory_id AS other, r.id AS representative, s.weight AS weight
ORDER BY fragment, error_id

// name: errors_often_failed
// Errors with more failed attempts than $keep.
UNWIND $ids AS id
MATCH (e:ErrorPattern {tenant: $tenant, id: id})
WHERE COUNT { (e)<-[:CAUSED_ERROR]-(:Fragment {fragment_type: 'failed_attempt'}) } > $keep
RETURN collect(id) AS found

// name: failed_fragments
// Failed attempts at an error beyond the newest, without those that cleared an error.
MATCH (:ErrorPattern {tenant: $tenant, id: $error_id})
    <-[:CAUSED_ERROR]-(f:Fragment {fragment_type: 'failed_attempt'})
WHERE NOT EXISTS { (f)-[:RECOVERED]->() }
WITH f ORDER BY f.seen_at DESC, f.id SKIP $keep LIMIT $limit
RETURN f.id AS id, f.trajectory_id AS trajectory_id, f.repo AS repo,
    COLLECT { MATCH (f)-[:TOUCHED]->(file:File) RETURN file.name } AS files
