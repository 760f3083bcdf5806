// Provenance of a methodology ($id): its sources, their runs, the errors that it resolves
MATCH (m:Methodology {tenant: $tenant, id: $id})
RETURN m,
    COLLECT {
        MATCH source = (m)-[:DERIVED_FROM]->(:Fragment)<-[:HAS_FRAGMENT]-(t:Trajectory)
        RETURN source ORDER BY t.seen_at DESC, t.id LIMIT 25
    } AS newest_sources,
    COLLECT { MATCH resolves = (:ErrorPattern)-[:RESOLVED_BY]->(m) RETURN resolves } AS resolves,
    COLLECT { MATCH history = (m)-[:SUPERSEDES*1..3]-(:Methodology) RETURN history } AS history;
