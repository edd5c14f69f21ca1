-- What is said about a question stays as it was said: it is settled once and its reply read once, and goes with its
-- record or its project.
CREATE TRIGGER annotation_report_words_stay BEFORE UPDATE ON annotation_report
    FOR EACH ROW WHEN (
        (OLD.id, OLD.project_id, OLD.query_id, OLD.annotator_id, OLD.kind, OLD.comment, OLD.created_at)
        IS DISTINCT FROM
        (NEW.id, NEW.project_id, NEW.query_id, NEW.annotator_id, NEW.kind, NEW.comment, NEW.created_at)
        OR (OLD.resolved_at IS NOT NULL AND (OLD.resolved_at, OLD.resolved_by_id, OLD.reply)
            IS DISTINCT FROM (NEW.resolved_at, NEW.resolved_by_id, NEW.reply))
        OR (OLD.read_at IS NOT NULL AND OLD.read_at IS DISTINCT FROM NEW.read_at)
    )
    EXECUTE FUNCTION annotation_refuse('what was said about a question never changes, and is settled once');

-- Words may repeat what a record holds, so none may come in behind its being forgotten: whoever empties a question
-- holds its row, and we wait for them.
CREATE FUNCTION annotation_check_report() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asked record;
BEGIN
    SELECT emptied, project_id INTO asked FROM annotation_query WHERE id = NEW.query_id FOR SHARE;
    IF asked.emptied THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_report_not_forgotten',
            MESSAGE = 'nothing is said about a question whose record was forgotten';
    END IF;
    IF asked.project_id IS DISTINCT FROM NEW.project_id THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_report_own_project',
            MESSAGE = 'what is said about a question belongs to its project';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_report_about_a_question BEFORE INSERT ON annotation_report
    FOR EACH ROW EXECUTE FUNCTION annotation_check_report();

-- Managers know what others answered, so they write to nobody in front of a crowd; and only to who was asked the
-- question, for whoever was not must not learn that it exists.
CREATE FUNCTION annotation_check_reply() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM annotation_project WHERE id = NEW.project_id AND oracle = 'crowd') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_report_no_word_to_a_crowd',
            MESSAGE = 'managers write to nobody in front of a crowd';
    END IF;
    IF NOT EXISTS (
        SELECT FROM annotation_assignment WHERE query_id = NEW.query_id AND annotator_id = NEW.annotator_id
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_report_to_who_was_asked',
            MESSAGE = 'managers write about a question to those alone who were asked it';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_report_reply_inside BEFORE INSERT OR UPDATE OF reply ON annotation_report
    FOR EACH ROW WHEN (NEW.kind = 'returned' OR NEW.reply <> '') EXECUTE FUNCTION annotation_check_reply();
