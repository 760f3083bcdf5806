// What was shown, and whether it helped. Items are nodes of their own: their record remains when a
// methodology is removed and derived again.

// name: add_exposures
// Contexts that were shown; those that are recorded already stay as they are.
UNWIND $rows AS row
CALL (row) {
    MERGE (c:Context {tenant: $tenant, id: row.context_id})
    ON CREATE SET c.name = 'context ' + row.context_id, c.shown_at = row.shown_at,
        c.error_id = row.error_id, c.helped = row.helped, c.source = row.source,
        c.is_withheld = row.is_withheld, c.text = row.text, c.session = row.session,
        c.moment = row.moment, c.agent = row.agent, c.repo = row.repo, c.said = row.said,
        c.is_new = true
    WITH c, row WHERE c.is_new
    REMOVE c.is_new
    WITH c, row
    UNWIND row.items AS item
    MERGE (i:ShownItem {tenant: $tenant, id: item.id})
    ON CREATE SET i.name = item.id
    CREATE (c)-[:SHOWED {tenant: $tenant, position: item.position, advice: item.advice,
        patterns: item.patterns, helped: item.helped, why: item.why}]->(i)
}

// name: put_reports
// What is known by now of whether contexts and their items helped.
UNWIND $rows AS row
CALL (row) {
    MATCH (c:Context {tenant: $tenant, id: row.context_id})
    SET c.helped = row.helped, c.source = row.source
    WITH c, row
    UNWIND row.items AS item
    MATCH (c)-[s:SHOWED]->(i:ShownItem)
    WHERE i.id = item[0] AND s.advice = item[1]
    SET s.helped = item[2]
}

// name: exposures_by_id
// Contexts that were shown, with their items, by their ids.
UNWIND $ids AS id
MATCH (c:Context {tenant: $tenant, id: id})
RETURN c {.*, context_id: c.id} AS context,
    COLLECT { MATCH (c)-[s:SHOWED]->(i:ShownItem) RETURN s {.*, id: i.id} } AS items
ORDER BY c.id

// name: exposures_of_session
// Contexts that were shown in a session, with their items, the oldest first.
MATCH (c:Context {tenant: $tenant, session: $session})
WHERE c.session > ''
RETURN c {.*, context_id: c.id} AS context,
    COLLECT { MATCH (c)-[s:SHOWED]->(i:ShownItem) RETURN s {.*, id: i.id} } AS items
ORDER BY c.shown_at, c.id

// name: forget_session
// Empty what the agent of a session no longer knows.
UNWIND $rows AS row
MATCH (c:Context {tenant: $tenant, session: row.session})
WHERE c.session > ''
SET c.said = []

// name: exposures
// Contexts that were shown, with their items, in the order of their ids.
MATCH (c:Context {tenant: $tenant})
WHERE c.id > $after
WITH c ORDER BY c.id LIMIT $limit
RETURN c {.*, context_id: c.id} AS context,
    COLLECT { MATCH (c)-[s:SHOWED]->(i:ShownItem) RETURN s {.*, id: i.id} } AS items
ORDER BY c.id

// name: newest_exposures
// Contexts that were shown, with their items, the newest first.
MATCH (c:Context {tenant: $tenant})
WHERE c.id > '' AND ($name = '' OR c.id = $name OR EXISTS {
    MATCH (c)-[s:SHOWED]->(i:ShownItem) WHERE $name IN [i.id, s.advice]
})
WITH c ORDER BY c.shown_at DESC, c.id SKIP $skip LIMIT $limit
RETURN c {.*, context_id: c.id} AS context,
    COLLECT { MATCH (c)-[s:SHOWED]->(i:ShownItem) RETURN s {.*, id: i.id} } AS items
ORDER BY c.shown_at DESC, c.id

// name: exposure_tally
// What was shown since a time, by error: how many; how many of known effect, cleared, followed, both.
MATCH (c:Context {tenant: $tenant})
WHERE c.id > '' AND c.shown_at >= $since AND coalesce(c.is_withheld, false) = false
WITH c, COLLECT { MATCH (c)-[s:SHOWED]->() WHERE s.helped IS NOT NULL RETURN s.helped } AS tried,
    COUNT { (c)-[:SHOWED]->() } AS items
WITH coalesce(c.error_id, '') AS error, count(*) AS shown, count(c.helped) AS known,
    sum(CASE WHEN c.helped THEN 1 ELSE 0 END) AS cleared,
    sum(CASE WHEN size(tried) > 0 THEN 1 ELSE 0 END) AS followed,
    sum(CASE WHEN c.helped AND true IN tried THEN 1 ELSE 0 END) AS helped,
    sum(CASE WHEN c.helped AND NOT true IN tried THEN items ELSE 0 END) AS wrong
RETURN [error, shown, known, cleared, followed, helped, wrong] AS counts
ORDER BY error

// name: advice_record
// For each advice, or item, the newest contexts in which its effect is known.
UNWIND $names AS name
CALL (name) {
    CALL (name) {
        MATCH (c:Context)-[s:SHOWED]->()
        WHERE s.tenant = $tenant AND s.advice = name AND s.helped IS NOT NULL
        RETURN c
        UNION
        MATCH (i:ShownItem {tenant: $tenant, id: name})<-[s:SHOWED]-(c:Context)
        WHERE s.helped IS NOT NULL
        RETURN c
    }
    RETURN c ORDER BY c.shown_at DESC, c.id DESC LIMIT $limit
}
WITH DISTINCT c
RETURN c {.*, context_id: c.id} AS context,
    COLLECT { MATCH (c)-[s:SHOWED]->(i:ShownItem) RETURN s {.*, id: i.id} } AS items
ORDER BY c.id

// name: base_rates
// How many runs met these errors, and how many of them cleared them.
UNWIND $ids AS id
MATCH (e:ErrorPattern {tenant: $tenant, id: id})<-[m:MET]-()
RETURN id AS error_id, count(*) AS runs, count(CASE WHEN m.cleared THEN 1 END) AS cleared

// name: verdicts
// All decisions by hand, and how many named sources the runs have: 2 for more.
OPTIONAL MATCH (v:Verdict {tenant: $tenant}) WHERE v.id IS NOT NULL
WITH v ORDER BY v.id
WITH collect(v {advice: v.id, .is_quarantined, .decided_at}) AS verdicts
RETURN verdicts, COUNT {
    CALL () {
        MATCH (t:Trajectory)
        WHERE t.tenant = $tenant AND t.contributor > ''
        RETURN t.contributor AS name ORDER BY t.contributor LIMIT 1
        UNION
        MATCH (t:Trajectory)
        WHERE t.tenant = $tenant AND t.contributor > ''
        RETURN t.contributor AS name ORDER BY t.contributor DESC LIMIT 1
    }
    RETURN name
} AS sources

// name: put_verdicts
// Decisions made by hand; each replaces an earlier one.
UNWIND $rows AS row
CALL (row) {
    MERGE (v:Verdict {tenant: $tenant, id: row.advice})
    SET v.name = row.advice, v.is_quarantined = row.is_quarantined, v.decided_at = row.decided_at
}

// name: empty_shown_texts
// Empty the texts in which these items were shown.
UNWIND $ids AS id
MATCH (:ShownItem {tenant: $tenant, id: id})<-[:SHOWED]-(c:Context)
SET c.text = '', c.said = []

// name: remove_shown_items
// Delete what was recorded of items that are gone.
MATCH (i:ShownItem)
WHERE i.tenant = $tenant AND i.id IN $ids
DETACH DELETE i
