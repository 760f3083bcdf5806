// Similar fragments: fragments that represent many others
MATCH (f:Fragment {tenant: $tenant})-[s:SIMILAR_TO]->(r:Fragment)
WITH r, count(*) AS similar, count(DISTINCT f.run) AS runs, min(s.weight) AS least_weight
RETURN r.repo AS repo, r.description AS representative, similar, runs,
    round(least_weight, 2) AS least_weight, r.id AS id
ORDER BY similar DESC, id
LIMIT 25;
