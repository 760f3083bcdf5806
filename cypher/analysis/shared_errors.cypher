// Shared errors: the same error in several repositories
MATCH (t:Trajectory {tenant: $tenant})-[m:MET]->(e:ErrorPattern)
WITH e, count(*) AS runs, collect(DISTINCT t.repo) AS repos,
    sum(m.cleared) AS cleared
WHERE size(repos) > 1
RETURN e.error_type AS error, e.template AS template, size(repos) AS repositories, runs, cleared,
    repos[..5] AS some
ORDER BY repositories DESC, runs DESC, template
LIMIT 25;
