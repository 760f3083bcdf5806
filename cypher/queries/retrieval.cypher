// Candidates for the channels, by what names them (see `values_of`): the scope stands in each match,
// and orders follow an index as far as it goes. An index is read in its order only where all its
// leading properties are named. What is found comes in one record: each costs the driver as much as a
// hundred values.

// name: recoveries_for_error
// Recoveries from each error that is asked about: of its template, its type or its family, in a
// repository or in all of them. An index for each follows the order.
UNWIND $template_in_repo AS asked
CALL (asked) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.repo = asked.repo AND r.fingerprint = asked.fingerprint
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (asked.as_of IS NULL OR r.seen_at <= asked.as_of)
        AND NOT r.instance_id IN asked.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.repo DESC, r.fingerprint DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN asked.number AS number, found
UNION ALL
UNWIND $template_everywhere AS asked
CALL (asked) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.fingerprint = asked.fingerprint
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (asked.as_of IS NULL OR r.seen_at <= asked.as_of)
        AND NOT r.instance_id IN asked.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.fingerprint DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN asked.number AS number, found
UNION ALL
UNWIND $type_in_repo AS asked
CALL (asked) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.repo = asked.repo AND r.family = asked.family AND r.error_type = asked.error_type
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (asked.as_of IS NULL OR r.seen_at <= asked.as_of)
        AND NOT r.instance_id IN asked.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.repo DESC, r.family DESC, r.error_type DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN asked.number AS number, found
UNION ALL
UNWIND $type_everywhere AS asked
CALL (asked) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.family = asked.family AND r.error_type = asked.error_type
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (asked.as_of IS NULL OR r.seen_at <= asked.as_of)
        AND NOT r.instance_id IN asked.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.family DESC, r.error_type DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN asked.number AS number, found
UNION ALL
UNWIND $family_in_repo AS asked
CALL (asked) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.repo = asked.repo AND r.family = asked.family
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (asked.as_of IS NULL OR r.seen_at <= asked.as_of)
        AND NOT r.instance_id IN asked.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.repo DESC, r.family DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN asked.number AS number, found
UNION ALL
UNWIND $family_everywhere AS asked
CALL (asked) {
    MATCH (f:Fragment)-[r:RECOVERED]->(e:ErrorPattern)
    WHERE r.tenant = $tenant AND r.family = asked.family
        AND r.verified IS NOT NULL AND r.seen_at IS NOT NULL
        AND (asked.as_of IS NULL OR r.seen_at <= asked.as_of)
        AND NOT r.instance_id IN asked.excluded
    WITH f, r, e
    ORDER BY r.tenant DESC, r.family DESC,
        r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step
    LIMIT $limit
    RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
}
RETURN asked.number AS number, found

// name: recoveries_for_text
// Recoveries by the weights of the words they have; each word is asked for within the scope.
UNWIND $words AS word
CALL db.index.fulltext.queryRelationships('recovered_words', word.query) YIELD relationship AS r
WITH r, sum(word.weight) AS relevance
WHERE r.tenant = $tenant AND ($as_of IS NULL OR r.seen_at <= $as_of)
    AND NOT r.instance_id IN $excluded
MATCH (f:Fragment)-[r]->(e:ErrorPattern)
WITH f, r, e, relevance
ORDER BY relevance DESC, f.id, e.id, r.error_step LIMIT $limit
RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found

// name: recovered_word_counts
// In how many recoveries each word occurs. The query of a word asks for the term of the tenant, too:
// looking at each that was found once more takes half as long again.
UNWIND $words AS word
CALL (word) {
    CALL db.index.fulltext.queryRelationships('recovered_words', word.query) YIELD relationship
    RETURN count(*) AS count
}
RETURN word.word AS word, count

// name: trajectory_word_counts
// In how many runs each word occurs, in the same way.
UNWIND $words AS word
CALL (word) {
    CALL db.index.fulltext.queryNodes('trajectory_words', word.query) YIELD node
    RETURN count(*) AS count
}
RETURN word.word AS word, count

// name: representatives_of
// What stands for recoveries: of several in one fragment the first.
UNWIND $rows AS row
MATCH (:Fragment {tenant: $tenant, id: row.fragment_id})
    -[:SIMILAR_TO {error_id: row.error_id}]->(f:Fragment)
MATCH (f)-[r:RECOVERED]->(e:ErrorPattern {tenant: $tenant, id: row.error_id})
WHERE ($repo IS NULL OR r.repo = $repo) AND ($as_of IS NULL OR r.seen_at <= $as_of)
    AND NOT r.instance_id IN $excluded
WITH row, f, r, e ORDER BY r.error_step
WITH row.number AS number, collect([r.trajectory_id, f.id, e.id, r.error_step])[0] AS first
RETURN collect([number, first]) AS found

// name: trajectories_for_task_in_repo
// Runs of some types of task in a repository, solved ones first, then the newest.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.repo = $repo
    AND t.solved IS NOT NULL AND t.seen_at IS NOT NULL AND t.task_type IN $task_types
    AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t
ORDER BY t.tenant DESC, t.repo DESC, t.solved DESC, t.seen_at DESC, t.id
LIMIT $limit
RETURN collect(t.id) AS found

// name: trajectories_for_task_everywhere
// Runs of some types of task, solved ones first, then the newest.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant
    AND t.solved IS NOT NULL AND t.seen_at IS NOT NULL AND t.task_type IN $task_types
    AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t
ORDER BY t.tenant DESC, t.solved DESC, t.seen_at DESC, t.id
LIMIT $limit
RETURN collect(t.id) AS found

// name: trajectories_for_text
// Runs by the weights of the words they have; each word is asked for within the scope.
UNWIND $words AS word
CALL db.index.fulltext.queryNodes('trajectory_words', word.query) YIELD node AS t
WITH t, sum(word.weight) AS relevance
WHERE t.tenant = $tenant AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t, relevance
ORDER BY relevance DESC, t.id LIMIT $limit
RETURN collect(t.id) AS found

// name: fragments_at_file_in_repo
// Fragments that touched a file of this name in a repository, those of the newest run first.
MATCH (:File {tenant: $tenant, repo: $repo, name: $file_name})<-[:TOUCHED]-(f:Fragment)
WHERE f.phase IN $phases
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f
ORDER BY f.seen_at DESC, f.id LIMIT $limit
RETURN collect([f.trajectory_id, f.id]) AS found

// name: fragments_at_file_everywhere
// Fragments that touched a file of this name, those of the newest run first.
MATCH (:File {tenant: $tenant, name: $file_name})<-[:TOUCHED]-(f:Fragment)
WHERE f.phase IN $phases
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f
ORDER BY f.seen_at DESC, f.id LIMIT $limit
RETURN collect([f.trajectory_id, f.id]) AS found

// name: fragments_for_state_in_repo
// Fragments of some phases in a repository, those of the newest run first.
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.repo = $repo
    AND f.seen_at IS NOT NULL AND f.phase IN $phases
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f
ORDER BY f.tenant DESC, f.repo DESC, f.seen_at DESC, f.id LIMIT $limit
RETURN collect([f.trajectory_id, f.id]) AS found

// name: fragments_for_state_everywhere
// Fragments of some phases, those of the newest run first.
MATCH (f:Fragment)
WHERE f.tenant = $tenant
    AND f.seen_at IS NOT NULL AND f.phase IN $phases
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f
ORDER BY f.tenant DESC, f.seen_at DESC, f.id LIMIT $limit
RETURN collect([f.trajectory_id, f.id]) AS found
