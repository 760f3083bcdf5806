// Graph of failures ($repo): failed runs, the errors that they never cleared, their loops
MATCH (t:Trajectory {tenant: $tenant, outcome: 'failed'})
WHERE $repo = '' OR t.repo = toLower($repo)
WITH t ORDER BY t.total_steps DESC, t.id LIMIT 12
OPTIONAL MATCH open = (t)-[:MET {cleared: 0}]->(:ErrorPattern)
WITH t, collect(open)[..5] AS open
OPTIONAL MATCH loop = (t)-[:HAS_FRAGMENT]->(:Fragment {fragment_type: 'loop'})
RETURN t, open, collect(loop)[..3] AS loops;
