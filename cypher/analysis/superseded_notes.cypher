// Superseded notes: what was said before, and what replaced it
MATCH (old:Note {tenant: $tenant})
WHERE old.superseded_by IS NOT NULL
MATCH (new:Note {tenant: $tenant, id: old.superseded_by})
RETURN old.repo AS repo, old.content AS before, new.content AS now, new.source AS source
ORDER BY repo, new.created_at DESC
LIMIT 100;
