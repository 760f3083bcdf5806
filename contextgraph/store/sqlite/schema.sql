-- The tables of a memory file.
--
-- Keys of fragments and recoveries are the key of their run, shifted by RUN_BITS, plus their order:
-- the rows of one run are stored together, and keys of runs are never reused (the graph and the word
-- counts rely on it). Indexes cost more than rows: each is one more page in the log for each new
-- row, so those that only a query of all repositories would use exist only where such queries are
-- frequent. No foreign keys: bundles are checked before they are written, whole runs go by ranges of
-- keys, and enforcing them would need an index for every reference.

CREATE TABLE tenant (
    key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL, removals INTEGER NOT NULL,
    -- The revision at which methodologies or similarities changed last.
    abstracted INTEGER NOT NULL DEFAULT 0);

-- A repository of a tenant as one small number, for indexes and full text.
CREATE TABLE place (
    key INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL,
    repo TEXT NOT NULL, runs INTEGER NOT NULL DEFAULT 0, UNIQUE (tenant, repo));
CREATE INDEX place_largest ON place (tenant, runs DESC, repo);

-- Runs -------------------------------------------------------------------------------------------

CREATE TABLE trajectory (
    key INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL,
    place INTEGER NOT NULL, revision INTEGER NOT NULL,
    solved INTEGER NOT NULL, seen_at INTEGER NOT NULL,
    id TEXT NOT NULL, instance_id TEXT NOT NULL, repo TEXT NOT NULL, task TEXT NOT NULL,
    task_type TEXT NOT NULL, outcome TEXT NOT NULL, exit_status TEXT,
    total_steps INTEGER NOT NULL, summary TEXT NOT NULL, files TEXT NOT NULL,
    agent TEXT NOT NULL, model TEXT NOT NULL, source_format TEXT NOT NULL,
    source TEXT NOT NULL, run_at INTEGER, learned_at INTEGER NOT NULL,
    outcome_source TEXT NOT NULL DEFAULT 'log', change TEXT NOT NULL DEFAULT 'unknown',
    contributor TEXT NOT NULL DEFAULT '',
    UNIQUE (tenant, id));
CREATE INDEX trajectory_instance ON trajectory (tenant, instance_id);
CREATE INDEX trajectory_ranked
    ON trajectory (tenant, solved DESC, seen_at DESC, task_type);
CREATE INDEX trajectory_ranked_in_place
    ON trajectory (place, solved DESC, seen_at DESC, task_type);
CREATE INDEX trajectory_ranked_of_agent
    ON trajectory (tenant, agent, solved DESC, seen_at DESC);
CREATE INDEX trajectory_revision ON trajectory (tenant, revision);
CREATE INDEX trajectory_contributor
    ON trajectory (tenant, contributor) WHERE contributor <> '';

CREATE TABLE raw (trajectory INTEGER PRIMARY KEY, data BLOB NOT NULL);

-- What a run shows of its project and machine, as JSON: a start reads it in place of the log.
CREATE TABLE facts (trajectory INTEGER PRIMARY KEY, data TEXT NOT NULL);

-- Ids by which runs were known before: of version 0.1, or of a part of the run.
CREATE TABLE former_id (
    tenant INTEGER NOT NULL, id TEXT NOT NULL, trajectory_id TEXT NOT NULL,
    PRIMARY KEY (tenant, id)) WITHOUT ROWID;
CREATE INDEX former_id_of ON former_id (tenant, trajectory_id);

-- Keys of runs, and ids of fragments, that are gone, so that the graph can catch up.
CREATE TABLE removal (
    trajectory INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, revision INTEGER NOT NULL);
CREATE TABLE pruned (
    tenant INTEGER NOT NULL, fragment_id TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (tenant, fragment_id)) WITHOUT ROWID;

CREATE TABLE fragment (
    key INTEGER PRIMARY KEY, tenant INTEGER NOT NULL,
    trajectory INTEGER NOT NULL, place INTEGER NOT NULL,
    seen_at INTEGER NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL,
    start INTEGER NOT NULL, stop INTEGER NOT NULL, fragment_type TEXT NOT NULL,
    phase TEXT NOT NULL, outcome TEXT NOT NULL, description TEXT NOT NULL,
    action_sequence TEXT NOT NULL, files TEXT NOT NULL, open_file TEXT,
    repo TEXT NOT NULL, task_type TEXT NOT NULL,
    loop_kind TEXT, loop_command TEXT NOT NULL DEFAULT '',
    repetitions INTEGER NOT NULL DEFAULT 0, loop_ending TEXT, space TEXT, vector BLOB);
CREATE INDEX fragment_id ON fragment (tenant, id);
CREATE INDEX fragment_newest ON fragment (place, phase, seen_at DESC);
CREATE INDEX fragment_of_loop
    ON fragment (tenant, loop_command, seen_at DESC) WHERE loop_command <> '';

CREATE TABLE touched (
    fragment INTEGER NOT NULL, file_name TEXT NOT NULL,
    tenant INTEGER NOT NULL, trajectory INTEGER NOT NULL, place INTEGER NOT NULL,
    phase TEXT NOT NULL, seen_at INTEGER NOT NULL,
    PRIMARY KEY (fragment, file_name)) WITHOUT ROWID;
CREATE INDEX touched_newest
    ON touched (place, file_name, seen_at DESC, phase, trajectory);

-- Errors and what cleared them -------------------------------------------------------------------

-- With the sums of `met`: a page of the most common errors reads no run.
CREATE TABLE error_pattern (
    key INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, id TEXT NOT NULL,
    family TEXT NOT NULL, error_type TEXT NOT NULL, template TEXT NOT NULL,
    runs INTEGER NOT NULL DEFAULT 0, steps INTEGER NOT NULL DEFAULT 0,
    cleared INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, id), UNIQUE (tenant, family, error_type, template));
CREATE INDEX error_pattern_common ON error_pattern (tenant, runs DESC, id);

-- How one run met one error. The words of a pattern are those of the run of least id: they depend
-- neither on the order of learning nor on runs that were forgotten.
CREATE TABLE met (
    error INTEGER NOT NULL,
    trajectory INTEGER NOT NULL,
    trajectory_id TEXT NOT NULL, tenant INTEGER NOT NULL, place INTEGER NOT NULL,
    seen_at INTEGER NOT NULL, steps INTEGER NOT NULL, cleared INTEGER NOT NULL,
    keywords TEXT NOT NULL, context TEXT NOT NULL,
    PRIMARY KEY (trajectory, error)) WITHOUT ROWID;
CREATE INDEX met_first ON met (error, trajectory_id);
CREATE INDEX met_by_error
    ON met (error, seen_at DESC, trajectory_id, tenant, trajectory, steps, cleared);
CREATE INDEX met_by_error_in_place
    ON met (place, error, seen_at DESC, trajectory_id, trajectory, steps, cleared);

CREATE TABLE caused (
    fragment INTEGER NOT NULL,
    error INTEGER NOT NULL,
    tenant INTEGER NOT NULL, trajectory INTEGER NOT NULL, place INTEGER NOT NULL,
    phase TEXT NOT NULL, seen_at INTEGER NOT NULL, step_count INTEGER NOT NULL,
    steps TEXT NOT NULL, locations TEXT NOT NULL,
    PRIMARY KEY (fragment, error)) WITHOUT ROWID;
CREATE INDEX caused_by_error
    ON caused (place, phase, error, trajectory, seen_at, step_count);

-- Remedies: the actions between an error and the step that cleared it.
CREATE TABLE recovered (
    key INTEGER PRIMARY KEY, tenant INTEGER NOT NULL,
    trajectory INTEGER NOT NULL, place INTEGER NOT NULL,
    seen_at INTEGER NOT NULL, fragment INTEGER NOT NULL,
    error INTEGER NOT NULL, family TEXT NOT NULL,
    error_type TEXT NOT NULL, error_step INTEGER NOT NULL, cleared_step INTEGER NOT NULL,
    message TEXT NOT NULL, location TEXT, actions TEXT NOT NULL,
    verified INTEGER NOT NULL, workaround INTEGER NOT NULL,
    circumstances TEXT NOT NULL DEFAULT '[]', fragment_id TEXT NOT NULL DEFAULT '',
    -- NULL for what was learned before there was this column: computed when it is read.
    scored_words TEXT,
    UNIQUE (fragment, error, error_step));
CREATE INDEX recovered_template
    ON recovered (error, verified DESC, seen_at DESC, fragment_id, trajectory);
CREATE INDEX recovered_template_in_place
    ON recovered (error, place, verified DESC, seen_at DESC, fragment_id, trajectory);
CREATE INDEX recovered_type
    ON recovered (tenant, family, error_type, verified DESC, seen_at DESC, fragment_id, trajectory);
CREATE INDEX recovered_type_in_place
    ON recovered (place, family, error_type, verified DESC, seen_at DESC, fragment_id, trajectory);
CREATE INDEX recovered_family
    ON recovered (tenant, family, verified DESC, seen_at DESC, fragment_id, trajectory);
CREATE INDEX recovered_family_in_place
    ON recovered (place, family, verified DESC, seen_at DESC, fragment_id, trajectory);
CREATE INDEX recovered_in_order ON recovered (tenant, fragment_id);

-- Rows are the keys of runs, recoveries and notes. Only which words occur is stored.
CREATE VIRTUAL TABLE trajectory_text USING fts5 (
    words, detail=none, columnsize=0, tokenize="ascii tokenchars '_@'");
CREATE VIRTUAL TABLE recovered_text USING fts5 (
    words, detail=none, columnsize=0, tokenize="ascii tokenchars '_@'");
CREATE VIRTUAL TABLE trajectory_word USING fts5vocab (trajectory_text, row);
CREATE VIRTUAL TABLE recovered_word USING fts5vocab (recovered_text, row);
CREATE VIRTUAL TABLE note_text USING fts5 (
    words, detail=none, columnsize=0, tokenize="ascii tokenchars '_@'");

-- Embedding spaces. The vector of a run is zeros where its text has none; newer rows have greater
-- keys.
CREATE TABLE space (
    key INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, name TEXT NOT NULL,
    runs INTEGER NOT NULL, active INTEGER NOT NULL, similarity_threshold REAL,
    UNIQUE (tenant, name));
CREATE TABLE space_model (space INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE vectors (
    key INTEGER PRIMARY KEY AUTOINCREMENT, trajectory INTEGER NOT NULL,
    space INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (trajectory, space));

-- What consolidation derives ---------------------------------------------------------------------

-- By the ids of errors, not their keys: tombstones outlive the runs that met an error.
CREATE TABLE methodology (
    key INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, id TEXT NOT NULL,
    error_id TEXT NOT NULL, keyword TEXT NOT NULL, task_type TEXT, repo TEXT,
    situation TEXT NOT NULL, strategy TEXT NOT NULL, made_by TEXT NOT NULL,
    status TEXT NOT NULL, confidence REAL NOT NULL, support INTEGER NOT NULL,
    repositories INTEGER NOT NULL, success_rate REAL NOT NULL, avg_steps REAL NOT NULL,
    frequency INTEGER NOT NULL, success_count REAL NOT NULL, failure_count REAL NOT NULL,
    superseded_by TEXT, remedies TEXT NOT NULL DEFAULT '[]', words TEXT,
    space TEXT, vector BLOB, UNIQUE (tenant, id));
CREATE INDEX methodology_of_error ON methodology (tenant, error_id);
CREATE INDEX methodology_superseded
    ON methodology (tenant, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE TABLE resolved_by (
    tenant INTEGER NOT NULL, error_id TEXT NOT NULL, methodology_id TEXT NOT NULL,
    success_rate REAL NOT NULL, avg_steps REAL NOT NULL, support INTEGER NOT NULL,
    PRIMARY KEY (tenant, error_id, methodology_id)) WITHOUT ROWID;
CREATE INDEX resolved_by_methodology ON resolved_by (tenant, methodology_id);
CREATE TABLE derived_from (
    trajectory INTEGER NOT NULL, fragment INTEGER NOT NULL, methodology INTEGER NOT NULL,
    trajectory_id TEXT NOT NULL, fragment_id TEXT NOT NULL,
    PRIMARY KEY (trajectory, fragment, methodology)) WITHOUT ROWID;
CREATE INDEX derived_from_methodology
    ON derived_from (methodology, trajectory_id, fragment_id);
CREATE TABLE similar (
    fragment INTEGER NOT NULL, error_id TEXT NOT NULL, representative INTEGER NOT NULL,
    weight REAL NOT NULL, PRIMARY KEY (fragment, error_id)) WITHOUT ROWID;
CREATE INDEX similar_representative ON similar (representative);

-- Errors and repositories whose runs were taken away: what was derived from them is looked at again.
CREATE TABLE stale (
    tenant INTEGER NOT NULL, error_id TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (tenant, error_id)) WITHOUT ROWID;
CREATE TABLE stale_repo (
    tenant INTEGER NOT NULL, repo TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (tenant, repo)) WITHOUT ROWID;

-- Up to which revision a tenant is consolidated, who holds its lease until when and in which process,
-- and how probable remedies are, fitted on the runs of the memory.
CREATE TABLE consolidation (
    tenant INTEGER PRIMARY KEY, revision INTEGER NOT NULL,
    holder TEXT, expires_at INTEGER NOT NULL,
    machine TEXT, process INTEGER, started_at TEXT, gate TEXT);

-- What was shown, and decided about it -----------------------------------------------------------

CREATE TABLE exposure (
    key INTEGER PRIMARY KEY, tenant INTEGER NOT NULL,
    context_id TEXT NOT NULL, shown_at INTEGER NOT NULL, error_id TEXT, helped INTEGER,
    source TEXT NOT NULL DEFAULT '', is_withheld INTEGER, text TEXT NOT NULL DEFAULT '',
    session TEXT NOT NULL DEFAULT '', moment TEXT NOT NULL DEFAULT '',
    agent TEXT NOT NULL DEFAULT '', repo TEXT NOT NULL DEFAULT '',
    said TEXT NOT NULL DEFAULT '[]', UNIQUE (tenant, context_id));
CREATE INDEX exposure_newest ON exposure (tenant, shown_at DESC, context_id);
CREATE INDEX exposure_of_session ON exposure (tenant, session) WHERE session > '';
CREATE TABLE shown_item (
    exposure INTEGER NOT NULL, position INTEGER NOT NULL, tenant INTEGER NOT NULL,
    item TEXT NOT NULL, advice TEXT NOT NULL, patterns TEXT NOT NULL, helped INTEGER,
    why TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (exposure, position)) WITHOUT ROWID;
CREATE INDEX shown_item_of ON shown_item (tenant, item);
CREATE INDEX shown_item_of_advice ON shown_item (tenant, advice, helped);
CREATE TABLE verdict (
    tenant INTEGER NOT NULL, advice TEXT NOT NULL, is_quarantined INTEGER NOT NULL,
    decided_at INTEGER NOT NULL, PRIMARY KEY (tenant, advice)) WITHOUT ROWID;

-- What people and agents said --------------------------------------------------------------------

CREATE TABLE note (
    key INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, id TEXT NOT NULL,
    live INTEGER NOT NULL, created_at INTEGER NOT NULL, data TEXT NOT NULL,
    place INTEGER NOT NULL DEFAULT 0, kind TEXT NOT NULL DEFAULT 'note',
    -- The space of the vector; both are NULL while it waits, the vector alone without words.
    space TEXT, vector BLOB,
    UNIQUE (tenant, id));
CREATE INDEX note_newest ON note (tenant, place, kind, live, created_at);
CREATE TABLE note_link (
    tenant INTEGER NOT NULL, target TEXT NOT NULL, note INTEGER NOT NULL,
    PRIMARY KEY (tenant, target, note)) WITHOUT ROWID;
CREATE INDEX note_link_of ON note_link (note);

-- One for each run, each other table, and the schema: see `checksums`.
CREATE TABLE checksum (
    part TEXT NOT NULL, run INTEGER NOT NULL, value INTEGER NOT NULL,
    PRIMARY KEY (part, run)) WITHOUT ROWID;
