// Neighbourhood of an entity ($id): entities and pages at most two links away
MATCH (n:Note {tenant: $tenant, id: $id})
MATCH path = (n)-[:LINKED*1..2]-(other:Note)
WHERE other.live AND other.kind IN ['entity', 'page']
RETURN path
LIMIT 200;
