// Not embedded: runs without vectors in the active embedding space
MATCH (s:Space {tenant: $tenant, active: true})
MATCH (t:Trajectory {tenant: $tenant})
WHERE NOT s.id IN coalesce(t.embedded, [])
RETURN t.name AS run, t.repo AS repo, t.learned_at AS learned_at, s.name AS space, t.id AS id
ORDER BY learned_at DESC, id
LIMIT 25;
