DROP TRIGGER annotation_label_fixed ON annotation_label;
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

CREATE TRIGGER annotation_guidelines_fixed BEFORE UPDATE ON annotation_guidelines
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION annotation_refuse('a version of the guidelines never changes');
