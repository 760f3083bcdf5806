// What contradicts what: pairs of live notes, for a person to decide
MATCH (n:Note {tenant: $tenant, live: true})-[:CONTRADICTS]-(other:Note {live: true})
WHERE n.id < other.id
RETURN DISTINCT n.repo AS repo, n.content AS note, n.source AS source, other.content AS other, other.source AS other_source
ORDER BY repo, note
LIMIT 100;
