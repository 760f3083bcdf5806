// One run ($id): its fragments in order, the errors that they met and cleared
MATCH (t:Trajectory {tenant: $tenant, id: $id})-[h:HAS_FRAGMENT]->(f:Fragment)
OPTIONAL MATCH (f)-[c:CAUSED_ERROR]->(met:ErrorPattern)
OPTIONAL MATCH (f)-[r:RECOVERED]->(cleared:ErrorPattern)
RETURN t, h, f, c, met, r, cleared
ORDER BY f.order
LIMIT 200;
