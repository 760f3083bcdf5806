// Advice given: what agents were shown, and whether it helped
MATCH (c:Context {tenant: $tenant})-[s:SHOWED]->(i:ShownItem)
OPTIONAL MATCH (m:Methodology {tenant: $tenant, id: i.id})
OPTIONAL MATCH (f:Fragment {tenant: $tenant, id: i.id})
WITH i, coalesce(m.name, f.name, i.name) AS advice, count(*) AS shown,
    sum(CASE WHEN c.helped THEN s.share ELSE 0.0 END) AS helped,
    sum(CASE WHEN NOT c.helped THEN s.share ELSE 0.0 END) AS did_not
RETURN advice, shown, round(helped, 2) AS helped, round(did_not, 2) AS did_not, i.id AS id
ORDER BY shown DESC, helped DESC, id
LIMIT 25;
