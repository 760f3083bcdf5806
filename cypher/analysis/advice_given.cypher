// Advice given: what agents were shown, and whether it helped
MATCH (:Context {tenant: $tenant})-[:SHOWED]->(i:ShownItem)
WHERE NOT i.is_advice
WITH i.item AS id, count(*) AS shown,
    sum(CASE WHEN i.helped THEN 1 ELSE 0 END) AS helped,
    sum(CASE WHEN NOT i.helped THEN 1 ELSE 0 END) AS did_not
OPTIONAL MATCH (m:Methodology {tenant: $tenant, id: id})
OPTIONAL MATCH (f:Fragment {tenant: $tenant, id: id})
RETURN coalesce(m.name, f.name, id) AS advice, shown, helped, did_not, id
ORDER BY shown DESC, helped DESC, id
LIMIT 25;
