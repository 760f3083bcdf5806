// Contradictions: pairs of live notes of which one says otherwise, for a person to decide
MATCH (n:Note {tenant: $tenant})
WHERE n.live
UNWIND n.contradicts AS id
MATCH (other:Note {tenant: $tenant, id: id})
WHERE other.live AND n.id < other.id
RETURN n.repo AS repo, n.content AS note, n.source AS source, other.content AS other, other.source AS other_source
ORDER BY repo, note
LIMIT 100;
