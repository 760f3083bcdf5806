// Unresolved errors: met by several runs, cleared by none
MATCH (t:Trajectory {tenant: $tenant})-[m:MET]->(e:ErrorPattern)
WITH e, count(*) AS runs, sum(m.steps) AS steps, collect(DISTINCT t.repo) AS repos,
    sum(m.cleared) AS cleared
WHERE cleared = 0 AND runs > 1
RETURN e.error_type AS error, e.template AS template, runs, steps, repos[..5] AS repos
ORDER BY runs DESC, steps DESC, template
LIMIT 25;
