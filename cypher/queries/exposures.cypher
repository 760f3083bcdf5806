// What was shown, and whether it helped. Items are nodes of their own: their credit remains when a
// methodology is removed and derived again.

// name: add_exposures
// Contexts that were shown; those that are recorded already stay as they are.
UNWIND $rows AS row
CALL (row) {
    MERGE (c:Context {tenant: $tenant, id: row.context_id})
    ON CREATE SET c.name = 'context ' + row.context_id, c.shown_at = row.shown_at,
        c.error_id = row.error_id, c.helped = row.helped, c.is_new = true
    WITH c, row WHERE c.is_new
    REMOVE c.is_new
    WITH c, row
    UNWIND row.items AS item
    MERGE (i:ShownItem {tenant: $tenant, id: item[0]})
    ON CREATE SET i.name = item[0]
    CREATE (c)-[:SHOWED {share: item[1]}]->(i)
}

// name: report_outcomes
// Whether contexts helped, where that was not reported yet; the contexts that changed.
UNWIND $rows AS row
CALL (row) {
    MATCH (c:Context {tenant: $tenant, id: row.context_id})
    WHERE c.helped IS NULL
    SET c.helped = row.helped
    RETURN c.id AS context_id
}
RETURN context_id

// name: errors_of_contexts
// The errors that the items of contexts were to clear.
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

// name: exposures
// Contexts that were shown, with their items.
MATCH (c:Context {tenant: $tenant})
WHERE c.id > $after
WITH c ORDER BY c.id LIMIT $limit
RETURN c.id AS context_id, c.shown_at AS shown_at, c.error_id AS error_id, c.helped AS helped,
    COLLECT { MATCH (c)-[s:SHOWED]->(i:ShownItem) RETURN [i.id, s.share] } AS items
ORDER BY context_id

// name: remove_shown_items
// Delete what was recorded of items that are gone.
MATCH (i:ShownItem)
WHERE i.tenant = $tenant AND i.id IN $ids
DETACH DELETE i

// name: move_shown_items
// Credit the items that replace others with what these were credited with.
UNWIND $rows AS row
CALL (row) {
    MATCH (i:ShownItem {tenant: $tenant, id: row.before})<-[s:SHOWED]-(c:Context)
    MERGE (n:ShownItem {tenant: $tenant, id: row.now})
    ON CREATE SET n.name = row.now
    MERGE (c)-[now:SHOWED]->(n)
    SET now.share = coalesce(now.share, 0.0) + s.share
}
