// The words of a model stood in the strategy; the next consolidation requests them again. Commits
// batches and can be repeated.

MATCH (m:Methodology)
WHERE m.made_by CONTAINS ' '
CALL (m) {
    SET m.made_by = 'template/1', m.strategy = split(m.strategy, '\n')[0]
} IN TRANSACTIONS OF 1000 ROWS;
