// Which errors cost most ($repo): their steps and runs, and how many cleared them
MATCH (t:Trajectory {tenant: $tenant})-[met:MET]->(e:ErrorPattern)
WHERE $repo = '' OR t.repo = toLower($repo)
RETURN e.name AS error, sum(met.steps) AS steps, count(*) AS runs,
    sum(met.cleared) AS cleared_runs, count(DISTINCT t.repo) AS repositories,
    sum(CASE WHEN t.success THEN 1 ELSE 0 END) AS solved_runs
ORDER BY steps DESC, runs DESC, error
LIMIT 25;
