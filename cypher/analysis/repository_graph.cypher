// Graph of a repository ($repo): its most frequent errors, what cleared them, methodologies
MATCH (t:Trajectory {tenant: $tenant, repo: toLower($repo)})-[:MET]->(e:ErrorPattern)
WITH e, count(*) AS runs ORDER BY runs DESC, e.id LIMIT 8
OPTIONAL MATCH cleared = (e)<-[:RECOVERED]-(f:Fragment {repo: toLower($repo)})<-[:HAS_FRAGMENT]-(:Trajectory)
WITH e, runs, cleared ORDER BY f.seen_at DESC, f.id
WITH e, runs, collect(cleared)[..3] AS clearances
OPTIONAL MATCH advised = (e)-[:RESOLVED_BY]->(m:Methodology)
WHERE m.status <> 'retired' AND (m.repo IS NULL OR m.repo = toLower($repo))
RETURN e, clearances, advised
ORDER BY runs DESC, e.id;
