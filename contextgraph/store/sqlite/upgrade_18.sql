-- From the tables before the console to those of `schema.sql`. Never changed once 0.2 is released.

-- Sums, and orders in which pages list what is many.
ALTER TABLE place ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
UPDATE place SET runs = (SELECT count(*) FROM trajectory t WHERE t.place = place.key);
CREATE INDEX place_largest ON place (tenant, runs DESC, repo);
ALTER TABLE error_pattern ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE error_pattern ADD COLUMN steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE error_pattern ADD COLUMN cleared INTEGER NOT NULL DEFAULT 0;
UPDATE error_pattern SET (runs, steps, cleared) = (
    SELECT count(*), coalesce(sum(m.steps), 0), coalesce(sum(m.cleared), 0)
    FROM met m WHERE m.error = error_pattern.key);
CREATE INDEX error_pattern_common ON error_pattern (tenant, runs DESC, id);
DROP INDEX met_by_error;
CREATE INDEX met_first ON met (error, trajectory_id);
CREATE INDEX met_by_error
    ON met (error, seen_at DESC, trajectory_id, tenant, trajectory, steps, cleared);
CREATE INDEX fragment_id ON fragment (tenant, id);
CREATE INDEX exposure_newest ON exposure (tenant, shown_at DESC, context_id);

-- What was said and why; of what was shown before, neither is known.
ALTER TABLE exposure ADD COLUMN text TEXT NOT NULL DEFAULT '';
ALTER TABLE shown_item ADD COLUMN why TEXT NOT NULL DEFAULT '';
DROP INDEX shown_item_of_advice;
CREATE INDEX shown_item_of_advice ON shown_item (tenant, advice, helped);
