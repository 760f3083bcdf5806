// How agents differ: solved runs, steps, loops, runs without an edit, errors
MATCH (t:Trajectory {tenant: $tenant})
WITH t, COUNT { (t)-[:MET]->() } AS errors
WITH t.agent AS agent, t.model AS model, count(*) AS runs, sum(errors) AS errors,
    sum(CASE WHEN t.success IS NULL THEN 0 ELSE 1 END) AS known,
    sum(CASE WHEN t.success THEN 1 ELSE 0 END) AS solved, avg(t.total_steps) AS steps,
    sum(t.looped_steps) AS looped, sum(t.total_steps) AS all_steps,
    sum(CASE WHEN t.first_edit IS NULL THEN 1 ELSE 0 END) AS without_edit
RETURN agent, model, runs, known, solved, round(steps, 1) AS mean_steps,
    CASE WHEN all_steps > 0 THEN round(100.0 * looped / all_steps) END AS looped_percent,
    round(100.0 * without_edit / runs) AS without_edit_percent,
    round(1.0 * errors / runs, 1) AS errors_per_run
ORDER BY runs DESC, agent, model
LIMIT 25;
