// What was never used: methodologies that were not shown, notes that were not recalled
MATCH (n:Methodology|Note {tenant: $tenant})
WHERE (n:Methodology AND n.status <> 'retired'
        AND NOT EXISTS { (:ShownItem {tenant: $tenant, item: n.id}) })
    OR (n:Note AND n.live AND n.recalls = 0 AND NOT n.pinned AND n.kind <> 'entity')
RETURN coalesce(n.kind, 'methodology') AS kind, n.repo AS repo, n.name AS what,
    n.confidence AS confidence, n.created_at AS since
ORDER BY kind, confidence DESC, since, what
LIMIT 50;
