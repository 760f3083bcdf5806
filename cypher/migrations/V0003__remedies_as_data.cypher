// Data of version 0.1. Sentences about remedies become descriptions; `contextgraph rebuild` derives the
// actions from the stored runs. Each statement commits batches and can be repeated.

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
