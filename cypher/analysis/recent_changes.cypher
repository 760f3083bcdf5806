// What happened in the last $days days: runs and errors, by day
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.seen_at >= datetime() - duration({days: $days})
WITH date(t.seen_at) AS day, t
OPTIONAL MATCH (t)-[m:MET]->(e:ErrorPattern)
WITH day, t, collect(DISTINCT e) AS errors, sum(m.cleared) AS cleared
WITH day, collect(t) AS runs, collect(errors) AS met, sum(cleared) AS cleared
RETURN day, size(runs) AS runs, size([t IN runs WHERE t.success]) AS solved,
    reduce(n = 0, errors IN met | n + size(errors)) AS errors_met, cleared AS errors_cleared
ORDER BY day DESC;
