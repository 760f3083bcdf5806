// Loops by cost: where runs went round in circles, and how many steps that took
MATCH (t:Trajectory {tenant: $tenant})-[:HAS_FRAGMENT]->(f:Fragment {fragment_type: 'loop'})
OPTIONAL MATCH (f)-[:CAUSED_ERROR]->(e:ErrorPattern)
WITH t, f, head(collect(e.error_type)) AS error, f.end - f.start + 1 AS steps
RETURN t.repo AS repo, f.phase AS phase, coalesce(error, 'no error') AS error,
    count(*) AS loops, sum(steps) AS steps, max(steps) AS longest, count(DISTINCT t) AS runs
ORDER BY steps DESC, repo, phase, error
LIMIT 25;
