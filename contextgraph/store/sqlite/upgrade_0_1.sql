-- From the tables of version 0.1 to those of `schema.sql`. Never changed once 0.2 is released.

-- Of what was learned before, these are not known until a rebuild.
ALTER TABLE tenant ADD COLUMN abstracted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trajectory ADD COLUMN outcome_source TEXT NOT NULL DEFAULT 'log';
ALTER TABLE trajectory ADD COLUMN change TEXT NOT NULL DEFAULT 'unknown';
ALTER TABLE trajectory ADD COLUMN contributor TEXT NOT NULL DEFAULT '';
CREATE INDEX trajectory_contributor
    ON trajectory (tenant, contributor) WHERE contributor <> '';
ALTER TABLE fragment ADD COLUMN loop_kind TEXT;
ALTER TABLE fragment ADD COLUMN loop_command TEXT NOT NULL DEFAULT '';
ALTER TABLE fragment ADD COLUMN repetitions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE fragment ADD COLUMN loop_ending TEXT;
CREATE INDEX fragment_of_loop
    ON fragment (tenant, loop_command, seen_at DESC) WHERE loop_command <> '';
CREATE TABLE former_id (
    tenant INTEGER NOT NULL, id TEXT NOT NULL, trajectory_id TEXT NOT NULL,
    PRIMARY KEY (tenant, id)) WITHOUT ROWID;
CREATE INDEX former_id_of ON former_id (tenant, trajectory_id);
DROP TABLE retelling;
DROP TABLE retold_fragment;

-- Remedies are data: the sentences of version 0.1 go; there are no actions until a rebuild.
ALTER TABLE recovered DROP COLUMN what;
ALTER TABLE recovered ADD COLUMN circumstances TEXT NOT NULL DEFAULT '[]';
ALTER TABLE recovered ADD COLUMN fragment_id TEXT NOT NULL DEFAULT '';
UPDATE recovered SET fragment_id = (SELECT f.id FROM fragment f WHERE f.key = recovered.fragment);
ALTER TABLE recovered ADD COLUMN scored_words TEXT;
CREATE INDEX recovered_in_order ON recovered (tenant, fragment_id);
-- No query finds recoveries by family alone.
DROP INDEX recovered_family;
DROP INDEX recovered_family_in_place;

-- Runs have a vector; those of their fragments came after it in the row.
ALTER TABLE space RENAME COLUMN alike TO similarity_threshold;
DROP TABLE methodology_vector;
UPDATE vectors SET data = substr(data, 1, (SELECT 4 * CAST(
    replace(s.name, rtrim(s.name, replace(s.name, '@', '')), '') AS INTEGER)
    FROM space s WHERE s.key = vectors.space));

-- The playbook says what methodologies of no error did.
DELETE FROM derived_from
    WHERE methodology IN (SELECT key FROM methodology WHERE error_id = '');
DELETE FROM methodology WHERE error_id = '';
DROP INDEX methodology_of_repo;
ALTER TABLE methodology DROP COLUMN phase;
ALTER TABLE methodology DROP COLUMN last_used;
ALTER TABLE methodology ADD COLUMN remedies TEXT NOT NULL DEFAULT '[]';
-- The words of a model, which stood in the strategy; the next consolidation requests them.
ALTER TABLE methodology ADD COLUMN words TEXT;
UPDATE methodology SET made_by = 'template/1',
    strategy = substr(strategy, 1, instr(strategy || char(10), char(10)) - 1)
    WHERE instr(made_by, ' ');
ALTER TABLE consolidation ADD COLUMN machine TEXT;
ALTER TABLE consolidation ADD COLUMN process INTEGER;
ALTER TABLE consolidation ADD COLUMN started_at TEXT;
ALTER TABLE consolidation ADD COLUMN gate TEXT;

-- Credit is of advice, and computed from what is known of each item.
ALTER TABLE exposure ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE exposure ADD COLUMN is_withheld INTEGER;
CREATE TABLE shown_item (
    exposure INTEGER NOT NULL, position INTEGER NOT NULL, tenant INTEGER NOT NULL,
    item TEXT NOT NULL, advice TEXT NOT NULL, patterns TEXT NOT NULL, helped INTEGER,
    PRIMARY KEY (exposure, position)) WITHOUT ROWID;
INSERT INTO shown_item
    SELECT i.exposure, row_number() OVER (PARTITION BY i.exposure ORDER BY i.item),
        i.tenant, i.item, i.item, '[]', e.helped
    FROM exposed_item i JOIN exposure e ON e.key = i.exposure;
DROP TABLE exposed_item;
CREATE INDEX shown_item_of ON shown_item (tenant, item);
CREATE INDEX shown_item_of_advice
    ON shown_item (tenant, advice) WHERE helped IS NOT NULL;
CREATE TABLE verdict (
    tenant INTEGER NOT NULL, advice TEXT NOT NULL, is_quarantined INTEGER NOT NULL,
    decided_at INTEGER NOT NULL, PRIMARY KEY (tenant, advice)) WITHOUT ROWID;

CREATE TABLE note (
    key INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, id TEXT NOT NULL,
    live INTEGER NOT NULL, created_at INTEGER NOT NULL, data TEXT NOT NULL,
    place INTEGER NOT NULL DEFAULT 0, kind TEXT NOT NULL DEFAULT 'note',
    space TEXT, vector BLOB,
    UNIQUE (tenant, id));
CREATE VIRTUAL TABLE note_text USING fts5 (
    words, detail=none, columnsize=0, tokenize="ascii tokenchars '_@'");
CREATE INDEX note_newest ON note (tenant, place, kind, live, created_at);
CREATE TABLE note_link (
    tenant INTEGER NOT NULL, target TEXT NOT NULL, note INTEGER NOT NULL,
    PRIMARY KEY (tenant, target, note)) WITHOUT ROWID;
CREATE INDEX note_link_of ON note_link (note);
CREATE TABLE checksum (
    part TEXT NOT NULL, run INTEGER NOT NULL, value INTEGER NOT NULL,
    PRIMARY KEY (part, run)) WITHOUT ROWID;
