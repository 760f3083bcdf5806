// What was shown by its advice, decisions by hand, and who supplied a run.

CREATE RANGE INDEX showed_advice IF NOT EXISTS
FOR ()-[s:SHOWED]-() ON (s.tenant, s.advice);

CREATE CONSTRAINT verdict IF NOT EXISTS
FOR (n:Verdict) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE RANGE INDEX trajectory_contributor IF NOT EXISTS
FOR (n:Trajectory) ON (n.tenant, n.contributor);
