// What people and agents said. The value is in `data`; the other properties are for searching and for people.

// name: put_notes
// Store notes, each in place of the one with its id.
UNWIND $rows AS row
CALL (row) {
    MERGE (n:Note {tenant: $tenant, id: row.id})
    SET n.name = row.name, n.content = row.content, n.repo = row.repo, n.tags = row.tags,
        n.words = row.words, n.live = row.live, n.created_at = row.created_at, n.data = row.data
}

// name: notes
// The notes with these ids.
UNWIND $ids AS id
MATCH (n:Note {tenant: $tenant, id: id})
RETURN n.data AS data
ORDER BY n.id

// name: notes_for_text
// Live notes by how many of the words they have; each word is searched within the repository.
UNWIND $words AS word
CALL db.index.fulltext.queryNodes('note_words', word.query) YIELD node AS n
WITH n, count(*) AS found
WHERE n.tenant = $tenant AND n.live
RETURN n.data AS data
ORDER BY found DESC, n.created_at DESC, n.id LIMIT $limit

// name: notes_after
// All notes, by id.
MATCH (n:Note {tenant: $tenant})
WHERE n.id > $after
RETURN n.data AS data
ORDER BY n.id LIMIT $limit

// name: delete_notes
// Delete notes.
UNWIND $ids AS id
CALL (id) {
    MATCH (n:Note {tenant: $tenant, id: id})
    DETACH DELETE n
    RETURN id AS deleted
}
RETURN deleted
