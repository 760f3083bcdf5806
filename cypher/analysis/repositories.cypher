// Repositories: runs, outcomes, and the share of steps with an error
MATCH (t:Trajectory {tenant: $tenant})
WITH t, COLLECT { MATCH (t)-[m:MET]->(:ErrorPattern) RETURN m.steps } AS errors
RETURN t.repo AS repo, count(*) AS runs,
    sum(CASE t.outcome WHEN 'solved' THEN 1 ELSE 0 END) AS solved,
    sum(CASE t.outcome WHEN 'failed' THEN 1 ELSE 0 END) AS failed,
    sum(CASE t.outcome WHEN 'unknown' THEN 1 ELSE 0 END) AS unknown,
    round(avg(t.total_steps), 1) AS avg_steps,
    round(100.0 * sum(reduce(steps = 0, n IN errors | steps + n)) / sum(t.total_steps), 1)
        AS error_percent
ORDER BY runs DESC, repo
LIMIT 25;
