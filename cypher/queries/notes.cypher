// What people and agents said. The value is in `data`; the other properties are for searching and for people.
// Each kind has a label beside `Note` (`Entity`, `Page`, `Statement`), each link the type of a relation in capitals.
// A note without `data` is not known: another one links to its id.

// name: put_notes
// Store notes, each in place of the one with its id.
UNWIND $rows AS row
CALL (row) {
    MERGE (n:Note {tenant: $tenant, id: row.id})
    SET n.name = row.name, n.content = row.content, n.repo = row.repo, n.tags = row.tags, n.kind = row.kind, n.pinned = row.pinned,
        n.words = row.words, n.live = row.live, n.created_at = row.created_at, n.data = row.data, n.locked = null,
        n.source = row.source, n.contradicts = row.contradicts, n.superseded_by = row.superseded_by, n.recalls = row.recalls,
        n:$(row.label)
}

// name: lock_notes
// The notes with these ids, which nobody else can change until the transaction ends.
UNWIND $ids AS id
MATCH (n:Note {tenant: $tenant, id: id})
WHERE n.data IS NOT NULL
SET n.locked = true
RETURN n.data AS data
ORDER BY n.id

// name: remove_note_vectors
UNWIND $ids AS id
MATCH (n:Note {tenant: $tenant, id: id})
SET n.space = null, n.embedding = null

// name: remove_note_links
UNWIND $ids AS id
CALL (id) {
    MATCH (:Note {tenant: $tenant, id: id})-[link]->(:Note)
    DELETE link
}

// name: put_note_links
UNWIND $rows AS row
CALL (row) {
    MATCH (n:Note {tenant: $tenant, id: row.id})
    MERGE (target:Note {tenant: $tenant, id: row.target})
    MERGE (n)-[link:$(row.type)]->(target)
    SET link.weight = row.weight
}

// name: notes
// The notes with these ids.
UNWIND $ids AS id
MATCH (n:Note {tenant: $tenant, id: id})
WHERE n.data IS NOT NULL
RETURN n.data AS data
ORDER BY n.id

// name: notes_for_text
// Live notes by how many of the words they have; each word is searched within the repositories.
UNWIND $words AS word
CALL db.index.fulltext.queryNodes('note_words', word.query) YIELD node AS n
WITH n, count(*) AS found
WHERE n.tenant = $tenant AND n.live AND n.kind IN $kinds AND all(tag IN $tags WHERE tag IN n.tags)
    AND (n.pinned OR NOT $pinned)
RETURN n.data AS data
ORDER BY found DESC, n.created_at DESC, n.id LIMIT $limit

// name: nearest_notes
// The notes nearest to a vector, by comparing all.
MATCH (n:Note)
WHERE n.tenant = $tenant AND n.live
    AND n.repo IN $repos AND n.created_at IS NOT NULL // in_repo
    AND n.id > '' // everywhere
    AND n.kind IN $kinds AND all(tag IN $tags WHERE tag IN n.tags)
    AND (n.pinned OR NOT $pinned) AND n.space = $space
WITH n.id AS id, vector.similarity.cosine(n.embedding, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, round(2 * similarity - 1, 4) AS cosine
ORDER BY cosine DESC, id LIMIT $limit

// name: newest_notes
MATCH (n:Note)
WHERE n.tenant = $tenant AND n.live
    AND n.repo IN $repos AND n.created_at IS NOT NULL // in_repo
    AND n.id > '' // everywhere
    AND n.kind IN $kinds AND all(tag IN $tags WHERE tag IN n.tags)
    AND (n.pinned OR NOT $pinned)
RETURN n.data AS data
ORDER BY n.created_at DESC, n.id DESC LIMIT $limit

// name: notes_linking
// The notes with a link to one of these ids.
UNWIND $ids AS id
MATCH (:Note {tenant: $tenant, id: id})<--(n:Note)
RETURN DISTINCT n.id AS id, n.data AS data
ORDER BY id

// name: note_counts
// Live notes of each kind.
MATCH (n:Note {tenant: $tenant})
WHERE n.id > '' AND n.live
RETURN n.kind AS kind, count(*) AS count
ORDER BY kind

// name: notes_after
// All notes, by id.
MATCH (n:Note {tenant: $tenant})
WHERE n.id > $after AND n.data IS NOT NULL
RETURN n.id AS id, n.data AS data
ORDER BY id LIMIT $limit

// name: notes_to_embed
// Live notes but entities without a vector in a space.
MATCH (n:Note {tenant: $tenant})
WHERE n.id > $after AND n.live AND n.kind <> 'entity' AND ($space IS NULL OR n.space IS NULL OR n.space <> $space)
RETURN n.data AS data
ORDER BY n.id LIMIT $limit

// name: note_spaces
// Notes are embedded in a space from now on, without a vector until one is added.
UNWIND $ids AS id
MATCH (n:Note {tenant: $tenant, id: id})
WHERE n.data IS NOT NULL
SET n.space = $space, n.embedding = null

// name: add_note_vectors
UNWIND $rows AS row
MATCH (n:Note {tenant: $tenant, id: row.id})
WHERE n.space = $space
CALL db.create.setNodeVectorProperty(n, 'embedding', row.vector)

// name: delete_notes
// Delete what is known of notes; their ids stay while others link to them.
UNWIND $ids AS id
CALL (id) {
    MATCH (n:Note {tenant: $tenant, id: id})
    WHERE n.data IS NOT NULL
    SET n = {tenant: $tenant, id: id}
    REMOVE n:Entity:Page:Statement:Candidate
    RETURN id AS deleted
}
RETURN deleted

// name: delete_unlinked_notes
UNWIND $ids AS id
CALL (id) {
    MATCH (n:Note {tenant: $tenant, id: id})
    WHERE n.data IS NULL AND NOT (n)<--(:Note)
    DELETE n
}
