// Tags: how many live notes, pages and entities have each
MATCH (n:Note {tenant: $tenant})
WHERE n.live
UNWIND n.tags AS tag
RETURN tag, count(*) AS times, collect(DISTINCT n.kind) AS kinds, collect(DISTINCT n.repo)[..5] AS repos
ORDER BY times DESC, tag
LIMIT 100;
