// What solved runs have in common ($repo): steps, first edit, loops, tests, beside failed ones
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.success IS NOT NULL AND ($repo = '' OR t.repo = toLower($repo))
WITH t.outcome AS outcome, count(*) AS runs,
    percentileCont(t.total_steps, 0.5) AS steps,
    percentileCont(t.first_edit, 0.5) AS first_edit,
    sum(CASE WHEN t.first_edit IS NULL THEN 1 ELSE 0 END) AS without_edit,
    sum(CASE WHEN t.looped_steps > 0 THEN 1 ELSE 0 END) AS with_loop,
    sum(CASE WHEN 'not_tested' IN t.conditions THEN 1 ELSE 0 END) AS not_tested,
    sum(CASE WHEN 'error_open' IN t.conditions THEN 1 ELSE 0 END) AS error_open
RETURN outcome, runs, steps AS median_steps, first_edit AS median_first_edit,
    round(100.0 * without_edit / runs) AS without_edit_percent,
    round(100.0 * with_loop / runs) AS with_loop_percent,
    round(100.0 * not_tested / runs) AS not_tested_percent,
    round(100.0 * error_open / runs) AS error_open_percent
ORDER BY outcome DESC;
