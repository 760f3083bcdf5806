// Workarounds: errors that were avoided more often than solved
MATCH (:Fragment {tenant: $tenant})-[r:RECOVERED]->(e:ErrorPattern)
WITH e, count(*) AS clearances, sum(CASE WHEN r.workaround THEN 1 ELSE 0 END) AS avoided
WHERE avoided * 2 > clearances
RETURN e.error_type AS error, e.template AS template, clearances, avoided
ORDER BY avoided DESC, clearances DESC, template
LIMIT 25;
