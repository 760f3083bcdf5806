// Not embedded: runs without vectors in the active embedding space
MATCH (m:Memory {tenant: $tenant})
MATCH (s:Space {tenant: $tenant, name: m.active_space})
MATCH (t:Trajectory {tenant: $tenant})
WHERE NOT s.property IN t.embedded
RETURN t.name AS run, t.repo AS repo, t.learned_at AS learned_at, s.name AS space, t.id AS id
ORDER BY learned_at DESC, id
LIMIT 25;
