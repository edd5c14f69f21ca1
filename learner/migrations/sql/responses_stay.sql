-- A response is drawn once and stays: a second draw of the same answers would tell as much again, and nobody paid for it.
CREATE FUNCTION learner_check_response() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    paid jsonb;
    question annotation_query;
    classes integer;
BEGIN
    SELECT held.event_json::jsonb INTO paid
    FROM learner_answerseries series
    JOIN privacy_ledgerentry done ON done.id = series.entry_id AND done.kind = 'commit'
    JOIN privacy_ledgerentry held ON held.id = done.parent_id
    JOIN annotation_project project ON project.id = series.project_id AND project.labels_account_id = held.account_id
    -- As a way to randomise answers that is declared to be charged.
    WHERE series.project_id = NEW.project_id AND held.mechanism IN (
        SELECT facts ->> 'charged_as' FROM annotation_knownchoice WHERE kind = 'randomizer'
    );
    IF paid IS NULL OR NEW.number > coalesce((paid ->> 'randomizations')::integer, 0) OR NOT EXISTS (
        -- Drawn under this very charge, and written into its account.
        SELECT FROM learner_answerseries series JOIN privacy_ledgerentry drawn ON drawn.parent_id = series.entry_id
        WHERE series.project_id = NEW.project_id AND drawn.id = NEW.entry_id AND drawn.kind = 'post_processing'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'learner_response_paid',
            MESSAGE = 'nobody has paid for this response';
    END IF;
    SELECT * INTO question FROM annotation_query WHERE id = NEW.query_id FOR NO KEY UPDATE;
    classes := (SELECT jsonb_array_length(project.classes) FROM annotation_project project WHERE id = NEW.project_id);
    IF question.project_id <> NEW.project_id OR question.gate_run_id IS NULL OR question.overlap <> NEW.answers
        OR question.state NOT IN ('closed', 'disputed')
        OR NEW.number <> 1 + (SELECT count(*) FROM learner_randomizedlabel WHERE query_id = NEW.query_id)
        OR NOT NEW.said = ANY (NEW.kept) OR (SELECT max(kept) >= classes FROM unnest(NEW.kept) kept)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'learner_response_fits',
            MESSAGE = 'a response is to a settled question of its project, and the next of that question';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER learner_response_fits BEFORE INSERT ON learner_randomizedlabel
    FOR EACH ROW EXECUTE FUNCTION learner_check_response();

CREATE FUNCTION learner_responses_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- They go with their project only, and in one transaction with all it held.
    IF TG_OP = 'DELETE' AND TG_LEVEL = 'ROW' THEN
        IF EXISTS (SELECT FROM annotation_project WHERE id = OLD.project_id AND state = 'deleted') THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'learner_responses_stay',
        MESSAGE = 'what was said of answers is never said again, and what paid for it stays';
END
$$;

CREATE TRIGGER learner_responses_stay BEFORE UPDATE OR DELETE ON learner_randomizedlabel
    FOR EACH ROW EXECUTE FUNCTION learner_responses_stay();
CREATE TRIGGER learner_responses_not_emptied BEFORE TRUNCATE ON learner_randomizedlabel
    FOR EACH STATEMENT EXECUTE FUNCTION learner_responses_stay();
CREATE TRIGGER learner_answers_paid_once BEFORE UPDATE ON learner_answerseries
    FOR EACH ROW WHEN (OLD.entry_id IS NOT NULL) EXECUTE FUNCTION learner_responses_stay();
CREATE TRIGGER learner_answers_stay_paid BEFORE DELETE ON learner_answerseries
    FOR EACH ROW EXECUTE FUNCTION learner_responses_stay();
CREATE TRIGGER learner_answers_not_emptied BEFORE TRUNCATE ON learner_answerseries
    FOR EACH STATEMENT EXECUTE FUNCTION learner_responses_stay();
