// Where loops begin ($repo), as a graph: runs, the part before each loop, the loop, its files
MATCH (t:Trajectory {tenant: $tenant})-[:HAS_FRAGMENT]->(loop:Fragment {fragment_type: 'loop'})
WHERE $repo = '' OR t.repo = toLower($repo)
WITH t, loop ORDER BY loop.end - loop.start DESC, loop.id LIMIT 12
OPTIONAL MATCH before = (t)-[part:HAS_FRAGMENT]->(:Fragment) WHERE part.order = loop.order - 1
OPTIONAL MATCH touched = (loop)-[:TOUCHED]->(:File)
RETURN t, loop, before, collect(touched)[..3] AS touched;
