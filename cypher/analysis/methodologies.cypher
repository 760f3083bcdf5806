// Methodologies: situation, strategy, confidence and evidence
MATCH (m:Methodology {tenant: $tenant})
WHERE m.status IN ['active', 'probation']
OPTIONAL MATCH (e:ErrorPattern)-[r:RESOLVED_BY]->(m)
WITH m, collect(DISTINCT e.template)[..3] AS resolves, max(r.success_rate) AS success_rate
WITH m, resolves, success_rate,
    COUNT { (m)-[:DERIVED_FROM]->(:Fragment) } AS fragments,
    COUNT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN DISTINCT f.run } AS runs
RETURN m.situation AS situation, m.strategy AS strategy, m.status AS status,
    coalesce(m.repo, 'general') AS scope, round(m.confidence, 2) AS confidence,
    fragments, runs, round(success_rate, 2) AS success_rate, resolves, m.id AS id
ORDER BY confidence DESC, fragments DESC, id
LIMIT 25;
