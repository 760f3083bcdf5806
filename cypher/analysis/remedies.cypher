// Remedies: the most frequent errors, and what was done about them last
MATCH (f:Fragment {tenant: $tenant})-[r:RECOVERED]->(e:ErrorPattern)
WHERE r.verified
WITH e, r, f ORDER BY r.seen_at DESC, f.id
WITH e, count(*) AS clearances, collect(DISTINCT r.description)[..3] AS newest
RETURN e.error_type AS error, e.template AS template, clearances, newest
ORDER BY clearances DESC, template
LIMIT 25;
