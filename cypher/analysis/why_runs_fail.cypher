// Why runs fail ($repo): what they ended with, and how often such runs and others were solved
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.success IS NOT NULL AND ($repo = '' OR t.repo = toLower($repo))
WITH collect(t) AS judged
WITH judged, size(judged) AS total, size([t IN judged WHERE t.success]) AS solved_total
UNWIND judged AS t
UNWIND t.conditions AS condition
WITH condition, total, solved_total, count(*) AS runs,
    sum(CASE WHEN t.success THEN 1 ELSE 0 END) AS solved
RETURN condition, runs, solved, round(100.0 * solved / runs) AS solved_percent,
    CASE WHEN total > runs
        THEN round(100.0 * (solved_total - solved) / (total - runs))
    END AS others_solved_percent
ORDER BY others_solved_percent - solved_percent DESC, runs DESC, condition
LIMIT 25;
