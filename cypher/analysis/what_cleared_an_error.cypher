// What cleared it: the commonest errors, and what was done each time
MATCH (f:Fragment {tenant: $tenant})-[r:RECOVERED]->(e:ErrorPattern)
WHERE r.verified
WITH e, r, f ORDER BY r.seen_at DESC, f.id
WITH e, count(*) AS clearances, collect(DISTINCT r.what)[..3] AS newest
RETURN e.error_type AS error, e.template AS template, clearances, newest
ORDER BY clearances DESC, template
LIMIT 25;
