// Error hot spots: the most frequent errors by repository
MATCH (t:Trajectory {tenant: $tenant})-[m:MET]->(e:ErrorPattern)
WITH t.repo AS repo, e, count(*) AS runs, sum(m.steps) AS steps,
    sum(m.cleared) AS cleared
RETURN repo, e.error_type AS error, e.template AS template, runs, steps,
    round(100.0 * cleared / runs) AS cleared_percent
ORDER BY runs DESC, steps DESC, repo, template
LIMIT 25;
