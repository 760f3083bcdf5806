// Graph of a repository ($repo): its most frequent errors, what cleared them, methodologies
MATCH (t:Trajectory {tenant: $tenant, repo: toLower($repo)})-[:MET]->(e:ErrorPattern)
WITH e, count(*) AS runs ORDER BY runs DESC, e.id LIMIT 8
OPTIONAL MATCH cleared = (e)<-[:RECOVERED]-(f:Fragment {repo: toLower($repo)})<-[:HAS_FRAGMENT]-(:Trajectory)
WITH e, collect(cleared)[..6] AS clearances
OPTIONAL MATCH advised = (e)-[:RESOLVED_BY]->(:Methodology)
RETURN e, clearances, advised;
