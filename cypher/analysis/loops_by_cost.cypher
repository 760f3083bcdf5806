// Loops by cost: which commands are repeated, how many steps that takes, how it ends
MATCH (f:Fragment {tenant: $tenant})
WHERE f.fragment_type = 'loop'
RETURN f.repo AS repo, f.loop_command AS command, f.loop_kind AS kind, count(*) AS loops,
    sum(f.end - f.start + 1) AS steps, max(f.repetitions) AS most_repetitions,
    sum(CASE f.loop_ending WHEN 'cleared' THEN 1 ELSE 0 END) AS cleared,
    sum(CASE f.loop_ending WHEN 'run_ended' THEN 1 ELSE 0 END) AS ended_the_run
ORDER BY steps DESC, repo, command, kind
LIMIT 25;
