// Notes of a repository ($repo): what people and agents said, pinned ones first, then the newest
MATCH (n:Note {tenant: $tenant})
WHERE n.repo = toLower($repo) AND n.live AND n.kind = 'note'
RETURN n.content AS note, n.source AS source, n.pinned AS pinned, n.tags AS tags, n.recalls AS recalls, n.id AS id
ORDER BY pinned DESC, n.created_at DESC
LIMIT 100;
