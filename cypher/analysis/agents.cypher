// Agents: runs, solved runs and errors by agent and model
MATCH (t:Trajectory {tenant: $tenant})
WITH t, COLLECT { MATCH (t)-[m:MET]->(:ErrorPattern) RETURN m.cleared } AS met
WITH t.agent AS agent, t.model AS model, count(*) AS runs,
    sum(CASE WHEN t.success IS NULL THEN 0 ELSE 1 END) AS known,
    sum(CASE WHEN t.success THEN 1 ELSE 0 END) AS solved,
    avg(t.total_steps) AS avg_steps, sum(size(met)) AS errors,
    sum(reduce(n = 0, cleared IN met | n + cleared)) AS cleared
RETURN agent, model, runs, known, solved, round(avg_steps, 1) AS avg_steps,
    round(1.0 * errors / runs, 1) AS errors_per_run,
    CASE WHEN errors > 0 THEN round(100.0 * cleared / errors) END AS cleared_percent
ORDER BY runs DESC, agent, model
LIMIT 25;
