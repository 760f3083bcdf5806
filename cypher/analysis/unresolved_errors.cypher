// Unresolved errors: met by several tasks, cleared by none
MATCH (t:Trajectory {tenant: $tenant})-[m:MET]->(e:ErrorPattern)
WITH e, count(DISTINCT t.instance_id) AS tasks, sum(m.steps) AS steps, collect(DISTINCT t.repo) AS repos,
    sum(m.cleared) AS cleared
WHERE cleared = 0 AND tasks > 1
RETURN e.error_type AS error, e.template AS template, tasks, steps, repos[..5] AS repos
ORDER BY tasks DESC, steps DESC, template
LIMIT 25;
