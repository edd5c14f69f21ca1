DROP TRIGGER annotation_encounter_contributor ON annotation_encounter;
DROP FUNCTION annotation_put_contributor();
DROP FUNCTION annotation_has_met(bigint, bigint, bigint);
DROP FUNCTION annotation_asked_record(bigint);
