// Untrusted methodologies: quarantined or retired ones, with their counts
MATCH (m:Methodology {tenant: $tenant})
WHERE m.status IN ['quarantined', 'retired']
OPTIONAL MATCH (after:Methodology)-[:SUPERSEDES]->(m)
RETURN m.status AS status, m.situation AS situation, m.strategy AS strategy,
    round(m.confidence, 2) AS confidence, m.success_count AS helped, m.failure_count AS did_not,
    after.name AS superseded_by, m.id AS id
ORDER BY status, did_not DESC, confidence, id
LIMIT 50;
