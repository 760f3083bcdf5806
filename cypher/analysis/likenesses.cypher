// Likenesses: fragments that stand for many others
MATCH (f:Fragment {tenant: $tenant})-[s:SIMILAR_TO]->(r:Fragment)
WITH r, count(*) AS alike, count(DISTINCT f.trajectory_id) AS runs, min(s.weight) AS least_weight
RETURN r.repo AS repo, r.description AS stands_for, alike, runs,
    round(least_weight, 2) AS least_weight, r.id AS id
ORDER BY alike DESC, id
LIMIT 25;
