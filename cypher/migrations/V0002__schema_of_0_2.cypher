// Constraints and indexes that release 0.2 adds.

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

// No query finds recoveries by their family alone.
DROP INDEX recovered_family IF EXISTS;

DROP INDEX recovered_family_in_repo IF EXISTS;
