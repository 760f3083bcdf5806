// Error transitions: which other error follows an error in the same run
MATCH (t:Trajectory {tenant: $tenant})-[:HAS_FRAGMENT]->(:Fragment)-[c:CAUSED_ERROR]->(e:ErrorPattern)
UNWIND c.steps AS step
WITH t, e, step ORDER BY t.id, step, e.id
WITH t, collect(e.error_type) AS types
UNWIND range(0, size(types) - 2) AS i
WITH types[i] AS error, types[i + 1] AS next, count(*) AS times
WITH error, sum(times) AS all, collect({next: next, times: times}) AS nexts
UNWIND nexts AS found
WITH error, all, found WHERE found.next <> error
RETURN error, found.next AS next, found.times AS times,
    round(100.0 * found.times / all) AS percent
ORDER BY times DESC, error, next
LIMIT 25;
