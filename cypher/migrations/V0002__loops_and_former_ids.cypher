// Ids by which runs were known before, and loops by the command that they repeat.

CREATE CONSTRAINT former_id IF NOT EXISTS
FOR (n:FormerId) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE RANGE INDEX former_id_of IF NOT EXISTS
FOR (n:FormerId) ON (n.tenant, n.trajectory_id);

CREATE RANGE INDEX fragment_of_loop IF NOT EXISTS
FOR (n:Fragment) ON (n.tenant, n.loop_command, n.seen_at);
