-- What was emptied stays empty: nothing can be written back into the slot, and the slot itself never goes.
CREATE TRIGGER annotation_record_stays_empty BEFORE UPDATE ON annotation_record
    FOR EACH ROW WHEN (OLD.emptied AND OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION annotation_refuse('an emptied record stays empty');

CREATE TRIGGER annotation_query_stays_empty BEFORE UPDATE ON annotation_query
    FOR EACH ROW WHEN (OLD.emptied AND OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION annotation_refuse('an emptied question stays empty');

-- An answer is erased only together with its question; who gave it and when stays, since it was paid for.
CREATE FUNCTION annotation_check_label_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.choice IS NULL AND to_jsonb(NEW) - 'choice' = to_jsonb(OLD) - 'choice'
        AND EXISTS (SELECT FROM annotation_query WHERE id = OLD.query_id AND emptied)
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
        MESSAGE = 'labels are superseded once, never rewritten';
END $$;

CREATE TRIGGER annotation_label_says_something BEFORE INSERT ON annotation_label
    FOR EACH ROW WHEN (NEW.choice IS NULL)
    EXECUTE FUNCTION annotation_refuse('a label says something when it is given');

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
    EXECUTE FUNCTION annotation_check_label_change();
