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

// Runs have a vector; those of fragments and methodologies found nothing that helped. Their indexes are
// dropped by name, since they belong to spaces.
MATCH (f:Fragment)
WHERE any(key IN keys(f) WHERE key STARTS WITH 'embedding_')
CALL (f) {
    UNWIND [key IN keys(f) WHERE key STARTS WITH 'embedding_'] AS key
    SET f[key] = null
} IN TRANSACTIONS OF 1000 ROWS;

MATCH (m:Methodology)
WHERE m.embedded IS NOT NULL
CALL (m) {
    UNWIND [key IN keys(m) WHERE key STARTS WITH 'embedding_'] AS key
    SET m[key] = null
    SET m.embedded = null
} IN TRANSACTIONS OF 1000 ROWS;
