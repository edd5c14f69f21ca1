DROP TRIGGER annotation_label_says_something ON annotation_label;
DROP TRIGGER annotation_label_fixed ON annotation_label;
DROP FUNCTION annotation_check_label_change();
CREATE TRIGGER annotation_label_fixed BEFORE UPDATE ON annotation_label
    FOR EACH ROW WHEN (
        OLD.* IS DISTINCT FROM NEW.*
        AND (
            OLD.superseded_at IS NOT NULL
            OR (OLD.id, OLD.assignment_id, OLD.query_id, OLD.annotator_id, OLD.choice, OLD.supersedes_id,
                OLD.created_at, OLD.key)
            IS DISTINCT FROM
            (NEW.id, NEW.assignment_id, NEW.query_id, NEW.annotator_id, NEW.choice, NEW.supersedes_id,
                NEW.created_at, NEW.key)
        )
    )
    EXECUTE FUNCTION annotation_refuse('labels are superseded once, never rewritten');
DROP TRIGGER annotation_query_stays_empty ON annotation_query;
DROP TRIGGER annotation_record_stays_empty ON annotation_record;
