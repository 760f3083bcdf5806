// What was recorded of items in equal shares: each is its own advice. Commits batches and can be repeated.

MATCH (c:Context)-[s:SHOWED]->(i:ShownItem)
WHERE s.advice IS NULL
CALL (c, s, i) {
    SET s.tenant = c.tenant, s.advice = i.id, s.patterns = '[]', s.position = 0, s.helped = c.helped, s.share = null
} IN TRANSACTIONS OF 1000 ROWS;
