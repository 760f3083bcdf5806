// Constraints, range and full-text indexes of a memory. Vector indexes are made with their space.
// Community edition: uniqueness only. Everything is kept apart by tenant.

CREATE CONSTRAINT memory_tenant IF NOT EXISTS
FOR (n:Memory) REQUIRE n.tenant IS UNIQUE;

// Two processes that make the memory leave one record of its schema.
CREATE CONSTRAINT schema_name IF NOT EXISTS
FOR (n:Schema) REQUIRE n.name IS UNIQUE;

CREATE CONSTRAINT trajectory_id IF NOT EXISTS
FOR (n:Trajectory) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE CONSTRAINT raw_run_id IF NOT EXISTS
FOR (n:RawRun) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE CONSTRAINT fragment_id IF NOT EXISTS
FOR (n:Fragment) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE CONSTRAINT error_pattern_id IF NOT EXISTS
FOR (n:ErrorPattern) REQUIRE (n.tenant, n.id) IS UNIQUE;

// Templates may be longer than an index can hold: their fingerprint is unique.
CREATE CONSTRAINT error_pattern_fingerprint IF NOT EXISTS
FOR (n:ErrorPattern) REQUIRE (n.tenant, n.fingerprint) IS UNIQUE;

CREATE CONSTRAINT file_name IF NOT EXISTS
FOR (n:File) REQUIRE (n.tenant, n.repo, n.name) IS UNIQUE;

CREATE CONSTRAINT methodology_id IF NOT EXISTS
FOR (n:Methodology) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE CONSTRAINT context_id IF NOT EXISTS
FOR (n:Context) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE CONSTRAINT shown_item_id IF NOT EXISTS
FOR (n:ShownItem) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE CONSTRAINT stale_error_id IF NOT EXISTS
FOR (n:StaleError) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE CONSTRAINT stale_repo_name IF NOT EXISTS
FOR (n:StaleRepo) REQUIRE (n.tenant, n.repo) IS UNIQUE;

CREATE CONSTRAINT space_name IF NOT EXISTS
FOR (n:Space) REQUIRE (n.tenant, n.name) IS UNIQUE;

CREATE RANGE INDEX error_pattern_type IF NOT EXISTS
FOR (n:ErrorPattern) ON (n.tenant, n.family, n.error_type);

CREATE RANGE INDEX methodology_of_error IF NOT EXISTS
FOR (n:Methodology) ON (n.tenant, n.error_id);

CREATE RANGE INDEX methodology_superseded IF NOT EXISTS
FOR (n:Methodology) ON (n.tenant, n.superseded_by);

CREATE RANGE INDEX similar_to IF NOT EXISTS
FOR ()-[r:SIMILAR_TO]-() ON (r.tenant);

// Runs: what consolidation has yet to look at, and the order of `trajectories_for_task`.
CREATE RANGE INDEX trajectory_revision IF NOT EXISTS
FOR (n:Trajectory) ON (n.tenant, n.revision);

CREATE RANGE INDEX trajectory_ranked IF NOT EXISTS
FOR (n:Trajectory) ON (n.tenant, n.solved, n.seen_at);

CREATE RANGE INDEX trajectory_ranked_in_repo IF NOT EXISTS
FOR (n:Trajectory) ON (n.tenant, n.repo, n.solved, n.seen_at);

CREATE RANGE INDEX fragment_newest IF NOT EXISTS
FOR (n:Fragment) ON (n.tenant, n.seen_at);

CREATE RANGE INDEX fragment_newest_in_repo IF NOT EXISTS
FOR (n:Fragment) ON (n.tenant, n.repo, n.seen_at);

CREATE RANGE INDEX file_everywhere IF NOT EXISTS
FOR (n:File) ON (n.tenant, n.name);

// Recoveries: one index for each level of agreement, by repository and over all of them.
CREATE RANGE INDEX recovered_template IF NOT EXISTS
FOR ()-[r:RECOVERED]-() ON (r.tenant, r.fingerprint, r.verified, r.seen_at);

CREATE RANGE INDEX recovered_template_in_repo IF NOT EXISTS
FOR ()-[r:RECOVERED]-() ON (r.tenant, r.repo, r.fingerprint, r.verified, r.seen_at);

CREATE RANGE INDEX recovered_type IF NOT EXISTS
FOR ()-[r:RECOVERED]-() ON (r.tenant, r.family, r.error_type, r.verified, r.seen_at);

CREATE RANGE INDEX recovered_type_in_repo IF NOT EXISTS
FOR ()-[r:RECOVERED]-() ON (r.tenant, r.repo, r.family, r.error_type, r.verified, r.seen_at);

CREATE RANGE INDEX recovered_family IF NOT EXISTS
FOR ()-[r:RECOVERED]-() ON (r.tenant, r.family, r.verified, r.seen_at);

CREATE RANGE INDEX recovered_family_in_repo IF NOT EXISTS
FOR ()-[r:RECOVERED]-() ON (r.tenant, r.repo, r.family, r.verified, r.seen_at);

// Errors that runs met, the newest of them first.
CREATE RANGE INDEX met IF NOT EXISTS
FOR ()-[r:MET]-() ON (r.tenant, r.fingerprint, r.seen_at);

CREATE RANGE INDEX met_in_repo IF NOT EXISTS
FOR ()-[r:MET]-() ON (r.tenant, r.repo, r.fingerprint, r.seen_at);

CREATE RANGE INDEX caused IF NOT EXISTS
FOR ()-[r:CAUSED_ERROR]-() ON (r.tenant, r.repo, r.phase);

// Words as this product splits them, by whitespace; the first two say whose they are.
CREATE FULLTEXT INDEX trajectory_words IF NOT EXISTS
FOR (n:Trajectory) ON EACH [n.words]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}};

CREATE FULLTEXT INDEX recovered_words IF NOT EXISTS
FOR ()-[r:RECOVERED]-() ON EACH [r.words]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}};

// Ids by which runs were known before, and loops by the command that they repeat.
CREATE CONSTRAINT former_id IF NOT EXISTS
FOR (n:FormerId) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE RANGE INDEX former_id_of IF NOT EXISTS
FOR (n:FormerId) ON (n.tenant, n.trajectory_id);

CREATE RANGE INDEX fragment_of_loop IF NOT EXISTS
FOR (n:Fragment) ON (n.tenant, n.loop_command, n.seen_at);

// What people and agents said.
CREATE CONSTRAINT note_id IF NOT EXISTS
FOR (n:Note) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE FULLTEXT INDEX note_words IF NOT EXISTS
FOR (n:Note) ON EACH [n.words]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}};

// What was shown by its advice, decisions by hand, and who supplied a run.
CREATE RANGE INDEX showed_advice IF NOT EXISTS
FOR ()-[s:SHOWED]-() ON (s.tenant, s.advice);

CREATE CONSTRAINT verdict IF NOT EXISTS
FOR (n:Verdict) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE RANGE INDEX trajectory_contributor IF NOT EXISTS
FOR (n:Trajectory) ON (n.tenant, n.contributor);

// The newest notes of a repository.
CREATE INDEX note_newest IF NOT EXISTS
FOR (n:Note) ON (n.tenant, n.repo, n.created_at);

// In which session of an agent something was shown.
CREATE RANGE INDEX context_session IF NOT EXISTS
FOR (n:Context) ON (n.tenant, n.session);
