// The playbook of a repository says what methodologies of no error did.

MATCH (m:Methodology)
WHERE m.error_id = ''
CALL (m) {
    DETACH DELETE m
} IN TRANSACTIONS OF 1000 ROWS;

MATCH (m:Methodology)
WHERE m.phase IS NOT NULL
CALL (m) {
    SET m.phase = null
} IN TRANSACTIONS OF 1000 ROWS;
