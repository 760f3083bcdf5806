// Error chains: three different errors in a row, and how many runs met them
MATCH (t:Trajectory {tenant: $tenant})-[:HAS_FRAGMENT]->(:Fragment)-[c:CAUSED_ERROR]->(e:ErrorPattern)
UNWIND c.steps AS step
WITH t, e, step ORDER BY t.id, step, e.id
WITH t, collect(e.error_type) AS types
// Repetitions of one error count once.
WITH t, [i IN range(0, size(types) - 1) WHERE i = 0 OR types[i] <> types[i - 1] | types[i]] AS types
UNWIND range(0, size(types) - 3) AS i
RETURN types[i] AS first, types[i + 1] AS second, types[i + 2] AS third,
    count(DISTINCT t) AS runs, count(*) AS times
ORDER BY runs DESC, times DESC, first, second, third
LIMIT 25;
