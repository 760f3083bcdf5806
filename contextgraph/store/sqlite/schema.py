"""Tables of the memory file, and the migrations that lead from an older schema to this one."""

from sqlite3 import Connection

from contextgraph.errors import (
    MemoryNotFoundError,
    SchemaError,
    StoreError,
)
from contextgraph.store.sqlite import checksums

APPLICATION_ID = 0x43477261  # "CGra", in the header of every memory file

# One tuple of statements per version, never changed once released. Keys of fragments and
# recoveries are the key of their run, shifted by RUN_BITS, plus their order: the rows of one run
# are stored together, and keys of runs are never reused (the graph and the word counts rely on it).
# Indexes cost more than rows: each is one more page in the log for each new row, so those that only
# a query of all repositories would use exist only where such queries are frequent.
# No foreign keys: bundles are checked before they are written, whole runs go by ranges of keys, and
# enforcing them would need an index for every reference.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE tenant (
            key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
            revision INTEGER NOT NULL, removals INTEGER NOT NULL)""",
        # A repository of a tenant as one small number, for indices and full text.
        """CREATE TABLE place (
            key INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL,
            repo TEXT NOT NULL, UNIQUE (tenant, repo))""",
        """CREATE TABLE trajectory (
            key INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL,
            place INTEGER NOT NULL, revision INTEGER NOT NULL,
            solved INTEGER NOT NULL, seen_at INTEGER NOT NULL,
            id TEXT NOT NULL, instance_id TEXT NOT NULL, repo TEXT NOT NULL, task TEXT NOT NULL,
            task_type TEXT NOT NULL, outcome TEXT NOT NULL, exit_status TEXT,
            total_steps INTEGER NOT NULL, summary TEXT NOT NULL, files TEXT NOT NULL,
            agent TEXT NOT NULL, model TEXT NOT NULL, source_format TEXT NOT NULL,
            source TEXT NOT NULL, run_at INTEGER, learned_at INTEGER NOT NULL,
            UNIQUE (tenant, id))""",
        "CREATE INDEX trajectory_instance ON trajectory (tenant, instance_id)",
        """CREATE INDEX trajectory_ranked
            ON trajectory (tenant, solved DESC, seen_at DESC, task_type)""",
        """CREATE INDEX trajectory_ranked_in_place
            ON trajectory (place, solved DESC, seen_at DESC, task_type)""",
        "CREATE INDEX trajectory_revision ON trajectory (tenant, revision)",
        "CREATE TABLE raw (trajectory INTEGER PRIMARY KEY, data BLOB NOT NULL)",
        # Keys of runs that are gone, so that the projection can catch up.
        """CREATE TABLE removal (
            trajectory INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, revision INTEGER NOT NULL)""",
        """CREATE TABLE fragment (
            key INTEGER PRIMARY KEY, tenant INTEGER NOT NULL,
            trajectory INTEGER NOT NULL, place INTEGER NOT NULL,
            seen_at INTEGER NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL,
            start INTEGER NOT NULL, stop INTEGER NOT NULL, fragment_type TEXT NOT NULL,
            phase TEXT NOT NULL, outcome TEXT NOT NULL, description TEXT NOT NULL,
            action_sequence TEXT NOT NULL, files TEXT NOT NULL, open_file TEXT,
            repo TEXT NOT NULL, task_type TEXT NOT NULL)""",
        "CREATE INDEX fragment_newest ON fragment (place, phase, seen_at DESC)",
        """CREATE TABLE touched (
            fragment INTEGER NOT NULL, file_name TEXT NOT NULL,
            tenant INTEGER NOT NULL, trajectory INTEGER NOT NULL, place INTEGER NOT NULL,
            phase TEXT NOT NULL, seen_at INTEGER NOT NULL,
            PRIMARY KEY (fragment, file_name)) WITHOUT ROWID""",
        """CREATE INDEX touched_newest
            ON touched (place, file_name, seen_at DESC, phase, trajectory)""",
        """CREATE TABLE error_pattern (
            key INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, id TEXT NOT NULL,
            family TEXT NOT NULL, error_type TEXT NOT NULL, template TEXT NOT NULL,
            UNIQUE (tenant, id), UNIQUE (tenant, family, error_type, template))""",
        # How one run met one error. The words of a pattern are those of the run of least id:
        # they depend neither on the order of learning nor on runs that were forgotten.
        """CREATE TABLE met (
            error INTEGER NOT NULL,
            trajectory INTEGER NOT NULL,
            trajectory_id TEXT NOT NULL, tenant INTEGER NOT NULL, place INTEGER NOT NULL,
            seen_at INTEGER NOT NULL, steps INTEGER NOT NULL, cleared INTEGER NOT NULL,
            keywords TEXT NOT NULL, context TEXT NOT NULL,
            PRIMARY KEY (trajectory, error)) WITHOUT ROWID""",
        """CREATE INDEX met_by_error
            ON met (error, trajectory_id, tenant, seen_at, trajectory, steps, cleared)""",
        """CREATE INDEX met_by_error_in_place
            ON met (place, error, seen_at DESC, trajectory_id, trajectory, steps, cleared)""",
        """CREATE TABLE caused (
            fragment INTEGER NOT NULL,
            error INTEGER NOT NULL,
            tenant INTEGER NOT NULL, trajectory INTEGER NOT NULL, place INTEGER NOT NULL,
            phase TEXT NOT NULL, seen_at INTEGER NOT NULL, step_count INTEGER NOT NULL,
            steps TEXT NOT NULL, locations TEXT NOT NULL,
            PRIMARY KEY (fragment, error)) WITHOUT ROWID""",
        """CREATE INDEX caused_by_error
            ON caused (place, phase, error, trajectory, seen_at, step_count)""",
        """CREATE TABLE recovered (
            key INTEGER PRIMARY KEY, tenant INTEGER NOT NULL,
            trajectory INTEGER NOT NULL, place INTEGER NOT NULL,
            seen_at INTEGER NOT NULL, fragment INTEGER NOT NULL,
            error INTEGER NOT NULL, family TEXT NOT NULL,
            error_type TEXT NOT NULL, error_step INTEGER NOT NULL, cleared_step INTEGER NOT NULL,
            message TEXT NOT NULL, location TEXT, what TEXT NOT NULL, actions TEXT NOT NULL,
            verified INTEGER NOT NULL, workaround INTEGER NOT NULL,
            UNIQUE (fragment, error, error_step))""",
        """CREATE INDEX recovered_template
            ON recovered (error, verified DESC, seen_at DESC, trajectory)""",
        """CREATE INDEX recovered_template_in_place
            ON recovered (error, place, verified DESC, seen_at DESC, trajectory)""",
        """CREATE INDEX recovered_type
            ON recovered (tenant, family, error_type, verified DESC, seen_at DESC, trajectory)""",
        """CREATE INDEX recovered_type_in_place
            ON recovered (place, family, error_type, verified DESC, seen_at DESC, trajectory)""",
        """CREATE INDEX recovered_family
            ON recovered (tenant, family, verified DESC, seen_at DESC, trajectory)""",
        """CREATE INDEX recovered_family_in_place
            ON recovered (place, family, verified DESC, seen_at DESC, trajectory)""",
        # Rows are the keys of trajectories and recoveries. Only which words occur is stored.
        """CREATE VIRTUAL TABLE trajectory_text USING fts5 (
            words, detail=none, columnsize=0, tokenize="ascii tokenchars '_@'")""",
        """CREATE VIRTUAL TABLE recovered_text USING fts5 (
            words, detail=none, columnsize=0, tokenize="ascii tokenchars '_@'")""",
        "CREATE VIRTUAL TABLE trajectory_word USING fts5vocab (trajectory_text, row)",
        "CREATE VIRTUAL TABLE recovered_word USING fts5vocab (recovered_text, row)",
        # Embedding spaces. The vectors of one run, that of the trajectory and then those of its
        # fragments by their keys, are one row: zeros say that a text has none, or that a fragment
        # was pruned. Newer rows have greater keys.
        """CREATE TABLE space (
            key INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, name TEXT NOT NULL,
            runs INTEGER NOT NULL, active INTEGER NOT NULL, UNIQUE (tenant, name))""",
        "CREATE TABLE space_model (space INTEGER PRIMARY KEY, data BLOB NOT NULL)",
        """CREATE TABLE vectors (
            key INTEGER PRIMARY KEY AUTOINCREMENT, trajectory INTEGER NOT NULL,
            space INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (trajectory, space))""",
        # By the ids of errors, not their keys: tombstones outlive the runs that met an error.
        """CREATE TABLE methodology (
            key INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, id TEXT NOT NULL,
            error_id TEXT NOT NULL, keyword TEXT NOT NULL, task_type TEXT, repo TEXT,
            situation TEXT NOT NULL, strategy TEXT NOT NULL, made_by TEXT NOT NULL,
            status TEXT NOT NULL, confidence REAL NOT NULL, support INTEGER NOT NULL,
            repositories INTEGER NOT NULL, success_rate REAL NOT NULL, avg_steps REAL NOT NULL,
            frequency INTEGER NOT NULL, success_count REAL NOT NULL, failure_count REAL NOT NULL,
            last_used INTEGER, superseded_by TEXT, UNIQUE (tenant, id))""",
        "CREATE INDEX methodology_of_error ON methodology (tenant, error_id)",
        """CREATE INDEX methodology_superseded
            ON methodology (tenant, superseded_by) WHERE superseded_by IS NOT NULL""",
        """CREATE TABLE resolved_by (
            tenant INTEGER NOT NULL, error_id TEXT NOT NULL, methodology_id TEXT NOT NULL,
            success_rate REAL NOT NULL, avg_steps REAL NOT NULL, support INTEGER NOT NULL,
            PRIMARY KEY (tenant, error_id, methodology_id)) WITHOUT ROWID""",
        "CREATE INDEX resolved_by_methodology ON resolved_by (tenant, methodology_id)",
        """CREATE TABLE derived_from (
            trajectory INTEGER NOT NULL, fragment INTEGER NOT NULL, methodology INTEGER NOT NULL,
            trajectory_id TEXT NOT NULL, fragment_id TEXT NOT NULL,
            PRIMARY KEY (trajectory, fragment, methodology)) WITHOUT ROWID""",
        """CREATE INDEX derived_from_methodology
            ON derived_from (methodology, trajectory_id, fragment_id)""",
        """CREATE TABLE similar (
            fragment INTEGER NOT NULL, error_id TEXT NOT NULL, representative INTEGER NOT NULL,
            weight REAL NOT NULL, PRIMARY KEY (fragment, error_id)) WITHOUT ROWID""",
        "CREATE INDEX similar_representative ON similar (representative)",
        # Errors whose runs were taken away, so that what was derived from them is looked at again.
        """CREATE TABLE stale (
            tenant INTEGER NOT NULL, error_id TEXT NOT NULL, revision INTEGER NOT NULL,
            PRIMARY KEY (tenant, error_id)) WITHOUT ROWID""",
        # Ids of fragments that were not worth keeping, so that the projection can catch up.
        """CREATE TABLE pruned (
            tenant INTEGER NOT NULL, fragment_id TEXT NOT NULL, revision INTEGER NOT NULL,
            PRIMARY KEY (tenant, fragment_id)) WITHOUT ROWID""",
        # Up to which revision a tenant is consolidated, and who holds its lease until when.
        """CREATE TABLE consolidation (
            tenant INTEGER PRIMARY KEY, revision INTEGER NOT NULL,
            holder TEXT, expires_at INTEGER NOT NULL)""",
        """CREATE TABLE exposure (
            key INTEGER PRIMARY KEY, tenant INTEGER NOT NULL,
            context_id TEXT NOT NULL, shown_at INTEGER NOT NULL, error_id TEXT, helped INTEGER,
            UNIQUE (tenant, context_id))""",
        # What was shown together shares the credit.
        """CREATE TABLE exposed_item (
            exposure INTEGER NOT NULL, item TEXT NOT NULL, share REAL NOT NULL,
            tenant INTEGER NOT NULL, PRIMARY KEY (exposure, item)) WITHOUT ROWID""",
        "CREATE INDEX exposed_item_of ON exposed_item (tenant, item)",
    ),
    # The calibrated similarity threshold of the space, where there is one.
    ("ALTER TABLE space ADD COLUMN alike REAL",),
    (
        # Methodologies of no error, which are of one phase; found by their repository.
        "ALTER TABLE methodology ADD COLUMN phase TEXT",
        """CREATE INDEX methodology_of_repo
            ON methodology (tenant, repo, support DESC) WHERE error_id = ''""",
        # Repositories whose runs were taken away, or that were never looked at as a whole.
        """CREATE TABLE stale_repo (
            tenant INTEGER NOT NULL, repo TEXT NOT NULL, revision INTEGER NOT NULL,
            PRIMARY KEY (tenant, repo)) WITHOUT ROWID""",
        """INSERT INTO stale_repo SELECT p.tenant, p.repo, t.revision
            FROM place p JOIN tenant t ON t.key = p.tenant WHERE p.repo <> ''""",
        # Zeros mean that a text has no vector. A row that is written again has a greater key.
        """CREATE TABLE methodology_vector (
            key INTEGER PRIMARY KEY AUTOINCREMENT, methodology INTEGER NOT NULL,
            space INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (methodology, space))""",
        "CREATE INDEX methodology_vector_of_space ON methodology_vector (space, key)",
    ),
    (
        # Runs and fragments in the words of a language model.
        """CREATE TABLE retelling (
            trajectory INTEGER PRIMARY KEY, made_by TEXT NOT NULL, told TEXT NOT NULL,
            summary TEXT NOT NULL)""",
        """CREATE TABLE retold_fragment (
            fragment INTEGER PRIMARY KEY, description TEXT NOT NULL)""",
    ),
    (
        # Remedies are data: the sentences of version 0.1 go; there are no actions until a rebuild.
        "ALTER TABLE recovered DROP COLUMN what",
        "ALTER TABLE methodology ADD COLUMN remedies TEXT NOT NULL DEFAULT '[]'",
        "ALTER TABLE fragment ADD COLUMN loop_kind TEXT",
        "ALTER TABLE fragment ADD COLUMN loop_command TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE fragment ADD COLUMN repetitions INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE fragment ADD COLUMN loop_ending TEXT",
        """CREATE INDEX fragment_of_loop
            ON fragment (tenant, loop_command, seen_at DESC) WHERE loop_command <> ''""",
        # Ids by which runs were known before: of version 0.1, or of a part of the run.
        """CREATE TABLE former_id (
            tenant INTEGER NOT NULL, id TEXT NOT NULL, trajectory_id TEXT NOT NULL,
            PRIMARY KEY (tenant, id)) WITHOUT ROWID""",
        "CREATE INDEX former_id_of ON former_id (tenant, trajectory_id)",
        # The revision at which methodologies or similarities changed last.
        "ALTER TABLE tenant ADD COLUMN abstracted INTEGER NOT NULL DEFAULT 0",
        "DROP TABLE retelling",
        "DROP TABLE retold_fragment",
    ),
    ("ALTER TABLE space RENAME COLUMN alike TO similarity_threshold",),
    ("ALTER TABLE trajectory ADD COLUMN outcome_source TEXT NOT NULL DEFAULT 'log'",),
    (
        # The playbook says what methodologies of no error did.
        """DELETE FROM derived_from
            WHERE methodology IN (SELECT key FROM methodology WHERE error_id = '')""",
        "DELETE FROM methodology WHERE error_id = ''",
        "DROP INDEX methodology_of_repo",
        "ALTER TABLE methodology DROP COLUMN phase",
        # Runs have a vector; those of fragments and methodologies found nothing that helped.
        "DROP TABLE methodology_vector",
        """UPDATE vectors SET data = substr(data, 1, (SELECT 4 * CAST(
            replace(s.name, rtrim(s.name, replace(s.name, '@', '')), '') AS INTEGER)
            FROM space s WHERE s.key = vectors.space))""",
    ),
    ("ALTER TABLE trajectory ADD COLUMN change TEXT NOT NULL DEFAULT 'unknown'",),
    (
        """CREATE TABLE checksum (
            part TEXT NOT NULL, run INTEGER NOT NULL, value INTEGER NOT NULL,
            PRIMARY KEY (part, run)) WITHOUT ROWID""",
    ),
    # Of what was learned before, none is known until a rebuild.
    ("ALTER TABLE recovered ADD COLUMN circumstances TEXT NOT NULL DEFAULT '[]'",),
    (
        """CREATE TABLE note (
            key INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, id TEXT NOT NULL,
            live INTEGER NOT NULL, created_at INTEGER NOT NULL, data TEXT NOT NULL,
            UNIQUE (tenant, id))""",
        """CREATE VIRTUAL TABLE note_text USING fts5 (
            words, detail=none, columnsize=0, tokenize="ascii tokenchars '_@'")""",
    ),
    (
        # Who supplied a run, and who reported what was shown.
        "ALTER TABLE trajectory ADD COLUMN contributor TEXT NOT NULL DEFAULT ''",
        """CREATE INDEX trajectory_contributor
            ON trajectory (tenant, contributor) WHERE contributor <> ''""",
        "ALTER TABLE exposure ADD COLUMN source TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE exposure ADD COLUMN is_withheld INTEGER",
        # Credit is of advice, and computed from what is known of each item.
        """CREATE TABLE shown_item (
            exposure INTEGER NOT NULL, position INTEGER NOT NULL, tenant INTEGER NOT NULL,
            item TEXT NOT NULL, advice TEXT NOT NULL, patterns TEXT NOT NULL, helped INTEGER,
            PRIMARY KEY (exposure, position)) WITHOUT ROWID""",
        """INSERT INTO shown_item
            SELECT i.exposure, row_number() OVER (PARTITION BY i.exposure ORDER BY i.item),
                i.tenant, i.item, i.item, '[]', e.helped
            FROM exposed_item i JOIN exposure e ON e.key = i.exposure""",
        "DROP TABLE exposed_item",
        "CREATE INDEX shown_item_of ON shown_item (tenant, item)",
        """CREATE INDEX shown_item_of_advice
            ON shown_item (tenant, advice) WHERE helped IS NOT NULL""",
        """CREATE TABLE verdict (
            tenant INTEGER NOT NULL, advice TEXT NOT NULL, is_quarantined INTEGER NOT NULL,
            decided_at INTEGER NOT NULL, PRIMARY KEY (tenant, advice)) WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE note ADD COLUMN place INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE note ADD COLUMN kind TEXT NOT NULL DEFAULT 'note'",
        # The space of the vector; both are NULL while it waits, data alone without words.
        "ALTER TABLE note ADD COLUMN space TEXT",
        "ALTER TABLE note ADD COLUMN vector BLOB",
        """UPDATE note SET place = coalesce((SELECT p.key FROM place p
            WHERE p.tenant = note.tenant AND p.repo = json_extract(note.data, '$.repo')), 0)""",
        "CREATE INDEX note_newest ON note (tenant, place, kind, live, created_at)",
        """CREATE TABLE note_link (
            tenant INTEGER NOT NULL, target TEXT NOT NULL, note INTEGER NOT NULL,
            PRIMARY KEY (tenant, target, note)) WITHOUT ROWID""",
        "CREATE INDEX note_link_of ON note_link (note)",
    ),
    (
        # The words of a model, which stood in the strategy; the next consolidation requests them.
        "ALTER TABLE methodology ADD COLUMN words TEXT",
        """UPDATE methodology SET made_by = 'template/1',
            strategy = substr(strategy, 1, instr(strategy || char(10), char(10)) - 1)
            WHERE instr(made_by, ' ')""",
    ),
    (
        "ALTER TABLE methodology DROP COLUMN last_used",  # nothing ever set it
        # The process of the holder of a lease; that of a lease taken before is not known.
        "ALTER TABLE consolidation ADD COLUMN machine TEXT",
        "ALTER TABLE consolidation ADD COLUMN process INTEGER",
        "ALTER TABLE consolidation ADD COLUMN started_at TEXT",
    ),
    # How probable remedies are, fitted on the runs of the memory.
    ("ALTER TABLE consolidation ADD COLUMN gate TEXT",),
    (
        "DROP INDEX IF EXISTS recovered_family",  # no query finds recoveries by family alone
        "DROP INDEX IF EXISTS recovered_family_in_place",
        "ALTER TABLE recovered ADD COLUMN fragment_id TEXT NOT NULL DEFAULT ''",
        """UPDATE recovered SET fragment_id =
            (SELECT f.id FROM fragment f WHERE f.key = recovered.fragment)""",
        "CREATE INDEX recovered_in_order ON recovered (tenant, fragment_id)",
        # Of what was learned before they are computed when it is read, until a rebuild.
        "ALTER TABLE recovered ADD COLUMN scored_words TEXT",
    ),
)
VERSION = len(MIGRATIONS)
RUN_BITS = 20


def check_schema(connection: Connection, name: str) -> bool:
    """True for the current schema, False where the file has to be migrated.

    Raises `StoreError` for a file of another program, `SchemaError` for one of a later version.
    """
    application = pragma(connection, "application_id")
    if application != APPLICATION_ID:
        if application == 0 and _is_empty(connection):
            return False
        raise StoreError(f"{name} is a database of another program; name another file")
    version = schema_version(connection)
    if version > VERSION:
        raise SchemaError(
            f"{name} has schema {version}, this version knows {VERSION}; "
            "upgrade contextgraph-memory"
        )
    return version == VERSION


def is_new(connection: Connection) -> bool:
    """True where nothing was ever written."""
    return pragma(connection, "application_id") == 0


def not_migrated(connection: Connection, name: str) -> StoreError:
    """The error for a file that only a writer may create or migrate."""
    if is_new(connection):
        return not_created(name)
    return SchemaError(
        f"{name} has schema {schema_version(connection)}, older than {VERSION}; "
        "`contextgraph migrate` brings it up to date"
    )


def not_created(name: str) -> MemoryNotFoundError:
    """The error for a memory that does not exist where none may be created."""
    return MemoryNotFoundError(f"no memory at {name}; learn something first")


def migrate(connection: Connection) -> None:
    """Bring the schema up to date within the transaction that is open."""
    checksums.drop_triggers(connection)
    for number in range(schema_version(connection), VERSION):
        for statement in MIGRATIONS[number]:
            connection.execute(statement)
    checksums.create_triggers(connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def pending(version: int) -> tuple[str, ...]:
    """The names of the migrations from *version* to the current one."""
    return tuple(f"schema {number}" for number in range(version + 1, VERSION + 1))


def schema_version(connection: Connection) -> int:
    """The schema version of the file, 0 for a new one."""
    return pragma(connection, "user_version")


def pragma(connection: Connection, name: str) -> int:
    """The number that the pragma *name* has."""
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _is_empty(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None
