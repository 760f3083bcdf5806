// The newest notes of a repository.

CREATE INDEX note_newest IF NOT EXISTS
FOR (n:Note) ON (n.tenant, n.repo, n.created_at);
