// In which session of an agent something was shown.
CREATE INDEX context_session IF NOT EXISTS
FOR (n:Context) ON (n.tenant, n.session);
