// Slow errors: the number of steps between an error and its clearance
MATCH (:Fragment {tenant: $tenant})-[r:RECOVERED]->(e:ErrorPattern)
WHERE r.verified
WITH e, count(*) AS clearances, max(r.cleared_step - r.error_step) AS most_steps,
    percentileDisc(r.cleared_step - r.error_step, 0.5) AS median_steps
WHERE clearances >= 3
RETURN e.error_type AS error, e.template AS template, clearances, median_steps, most_steps
ORDER BY median_steps DESC, clearances DESC, template
LIMIT 25;
