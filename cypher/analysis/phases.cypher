// Phases: steps, failures and loops by phase
MATCH (f:Fragment {tenant: $tenant})
WITH f.phase AS phase, count(*) AS fragments, sum(f.end - f.start + 1) AS steps,
    sum(CASE f.outcome WHEN 'failed' THEN 1 ELSE 0 END) AS failed,
    sum(CASE f.outcome WHEN 'recovered' THEN 1 ELSE 0 END) AS recovered,
    sum(CASE f.fragment_type WHEN 'loop' THEN 1 ELSE 0 END) AS loops
RETURN phase, fragments, steps, failed, recovered, loops,
    round(100.0 * failed / fragments) AS failed_percent
ORDER BY steps DESC, phase;
