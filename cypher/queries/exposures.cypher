// What was shown to agents, and what came of it. What was shown stands on nodes of its own: it is
// remembered also of a methodology that is taken back and found again.

// name: add_exposure
// Note what was shown; a context that is noted already stays as it is. (What it reads waits for what
// it writes: one node.)
MERGE (c:Context {tenant: $tenant, id: $context_id})
ON CREATE SET c.name = 'context ' + $context_id, c.shown_at = $shown_at, c.error_id = $error_id,
    c.is_new = true
WITH c WHERE c.is_new
REMOVE c.is_new
WITH c
UNWIND $items AS item
MERGE (i:ShownItem {tenant: $tenant, id: item})
ON CREATE SET i.name = item
CREATE (c)-[:SHOWED {share: $share}]->(i)

// name: report_outcomes
// Whether contexts helped, of those that were not reported of; which these are.
UNWIND $rows AS row
CALL (row) {
    MATCH (c:Context {tenant: $tenant, id: row.context_id})
    WHERE c.helped IS NULL
    SET c.helped = row.helped
    RETURN c.id AS context_id
}
RETURN context_id

// name: asked_errors
// The errors that contexts were to clear.
UNWIND $ids AS id
MATCH (c:Context {tenant: $tenant, id: id})
RETURN c.id AS context_id, c.error_id AS error_id

// name: credit
// How often items helped and did not, in shares.
UNWIND $ids AS id
MATCH (i:ShownItem {tenant: $tenant, id: id})<-[s:SHOWED]-(c:Context)
WHERE c.helped IS NOT NULL
RETURN id AS item, sum(CASE WHEN c.helped THEN s.share ELSE 0.0 END) AS helped,
    sum(CASE WHEN c.helped THEN 0.0 ELSE s.share END) AS failed

// name: remove_shown_items
// Forget that items were shown.
MATCH (i:ShownItem)
WHERE i.tenant = $tenant AND i.id IN $ids
DETACH DELETE i
