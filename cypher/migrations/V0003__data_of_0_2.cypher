// Data of release 0.1 in the form of 0.2. Each statement commits batches and can be repeated.

// Sentences about remedies become descriptions; `contextgraph rebuild` derives the actions from the stored runs.
MATCH ()-[r:RECOVERED]->()
WHERE r.what IS NOT NULL
CALL (r) {
    SET r.description = r.what, r.actions = '[]', r.what = null
} IN TRANSACTIONS OF 1000 ROWS;

MATCH (m:Methodology)
WHERE m.remedies IS NULL
CALL (m) {
    SET m.remedies = '[]'
} IN TRANSACTIONS OF 1000 ROWS;

MATCH (t:Trajectory)
WHERE t.retold_by IS NOT NULL
CALL (t) {
    SET t.retold = null, t.retold_by = null, t.retold_from = null
} IN TRANSACTIONS OF 1000 ROWS;

MATCH (f:Fragment)
WHERE f.retold IS NOT NULL
CALL (f) {
    SET f.retold = null
} IN TRANSACTIONS OF 1000 ROWS;

// Properties that have other names.
MATCH (e:ErrorPattern)
WHERE e.told_by IS NOT NULL
CALL (e) {
    SET e.described_by = e.told_by, e.told_by = null
} IN TRANSACTIONS OF 1000 ROWS;

MATCH (s:Space)
WHERE s.alike IS NOT NULL
SET s.similarity_threshold = s.alike, s.alike = null;

MATCH (m:Memory)
SET m.is_retold = null;

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

// What was recorded of items in equal shares: each is its own advice.
MATCH (c:Context)-[s:SHOWED]->(i:ShownItem)
WHERE s.advice IS NULL
CALL (c, s, i) {
    SET s.tenant = c.tenant, s.advice = i.id, s.patterns = '[]', s.position = 0, s.helped = c.helped, s.share = null
} IN TRANSACTIONS OF 1000 ROWS;

// The words of a model stood in the strategy; the next consolidation requests them again.
MATCH (m:Methodology)
WHERE m.made_by CONTAINS ' '
CALL (m) {
    SET m.made_by = 'template/1', m.strategy = split(m.strategy, '\n')[0]
} IN TRANSACTIONS OF 1000 ROWS;
