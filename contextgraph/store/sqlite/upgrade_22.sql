-- In which session of an agent something was shown.

ALTER TABLE exposure ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE exposure ADD COLUMN moment TEXT NOT NULL DEFAULT '';
ALTER TABLE exposure ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE exposure ADD COLUMN repo TEXT NOT NULL DEFAULT '';
ALTER TABLE exposure ADD COLUMN said TEXT NOT NULL DEFAULT '[]';
CREATE INDEX exposure_of_session ON exposure (tenant, session) WHERE session > '';
