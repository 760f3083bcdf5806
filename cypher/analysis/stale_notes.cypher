// Stale notes: live notes that were never recalled, the oldest first
MATCH (n:Note {tenant: $tenant})
WHERE n.live AND n.kind = 'note' AND n.recalls = 0 AND NOT n.pinned
RETURN n.repo AS repo, n.content AS note, n.source AS source, n.id AS id
ORDER BY n.created_at, id
LIMIT 100;
