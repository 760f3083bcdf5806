-- Recoveries of one moment, in the order in which they are found. Never changed once 0.2 is released.

DROP INDEX recovered_template;
DROP INDEX recovered_template_in_place;
DROP INDEX recovered_type;
DROP INDEX recovered_type_in_place;
CREATE INDEX recovered_template
    ON recovered (error, verified DESC, seen_at DESC, fragment_id, trajectory);
CREATE INDEX recovered_template_in_place
    ON recovered (error, place, verified DESC, seen_at DESC, fragment_id, trajectory);
CREATE INDEX recovered_type
    ON recovered (tenant, family, error_type, verified DESC, seen_at DESC, fragment_id, trajectory);
CREATE INDEX recovered_type_in_place
    ON recovered (place, family, error_type, verified DESC, seen_at DESC, fragment_id, trajectory);
