// Advice given: what agents were shown, and whether it helped
MATCH (c:Context {tenant: $tenant})-[s:SHOWED]->(i:ShownItem)
OPTIONAL MATCH (m:Methodology {tenant: $tenant, id: i.id})
OPTIONAL MATCH (f:Fragment {tenant: $tenant, id: i.id})
WITH i, coalesce(m.name, f.name, i.name) AS advice, count(*) AS shown,
    sum(CASE WHEN s.helped THEN 1 ELSE 0 END) AS helped,
    sum(CASE WHEN NOT s.helped THEN 1 ELSE 0 END) AS did_not
RETURN advice, shown, helped, did_not, i.id AS id
ORDER BY shown DESC, helped DESC, id
LIMIT 25;
