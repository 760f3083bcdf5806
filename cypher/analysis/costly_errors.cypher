// Which errors cost most ($repo): their steps, how many tasks met and cleared them
MATCH (t:Trajectory {tenant: $tenant})-[met:MET]->(e:ErrorPattern)
WHERE $repo = '' OR t.repo = toLower($repo)
RETURN e.name AS error, sum(met.steps) AS steps,
    count(DISTINCT t.instance_id) AS tasks,
    count(DISTINCT CASE WHEN met.cleared > 0 THEN t.instance_id END) AS cleared,
    count(DISTINCT t.repo) AS repositories,
    sum(CASE WHEN t.success THEN 1 ELSE 0 END) AS solved_runs
ORDER BY steps DESC, tasks DESC, error
LIMIT 25;
