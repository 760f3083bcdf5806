// Notes have a kind. Commits batches and can be repeated.

MATCH (n:Note)
WHERE n.kind IS NULL AND n.data IS NOT NULL
CALL (n) {
    SET n.kind = 'note', n.pinned = false
} IN TRANSACTIONS OF 1000 ROWS;
