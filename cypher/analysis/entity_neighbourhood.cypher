// Neighbourhood of an entity ($id): entities and pages at most two links away
MATCH (n:Entity {tenant: $tenant, id: $id})
MATCH path = (n)-[*1..2]-(other:Entity|Page)
WHERE other.live AND none(node IN nodes(path) WHERE node:Target)
RETURN path
LIMIT 200;
