// Which remedies hold ($repo): what cleared an error in several runs
MATCH (f:Fragment {tenant: $tenant})-[r:RECOVERED]->(e:ErrorPattern)
WHERE $repo = '' OR f.repo = toLower($repo)
WITH e, r.description AS remedy, count(DISTINCT f.run) AS runs,
    count(DISTINCT CASE WHEN r.verified AND NOT r.workaround THEN f.run END) AS held,
    round(avg(r.cleared_step - r.error_step), 1) AS steps
WHERE held > 1
RETURN e.name AS error, remedy, held, runs, steps
ORDER BY held DESC, steps, error, remedy
LIMIT 25;
