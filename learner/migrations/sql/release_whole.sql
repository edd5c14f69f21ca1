-- What a release descends from is written with it, and what it was measured at is written once.
CREATE FUNCTION learner_lineage_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    found text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT state INTO found FROM learner_modelrelease WHERE id = NEW.modelrelease_id;
        IF found = 'candidate' THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'the lineage of a release stays' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_lineage_stays';
END
$$;

CREATE TRIGGER learner_lineage_stays BEFORE INSERT OR UPDATE OR DELETE ON learner_modelrelease_lineage
    FOR EACH ROW EXECUTE FUNCTION learner_lineage_stays();

CREATE FUNCTION learner_evaluation_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an evaluation of a release stays' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_evaluation_stays';
END
$$;

CREATE TRIGGER learner_evaluation_stays BEFORE UPDATE OR DELETE ON learner_evaluation
    FOR EACH ROW EXECUTE FUNCTION learner_evaluation_stays();

CREATE FUNCTION learner_stopping_advice_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what a version says of further answers stays' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_stopping_advice_stays';
END
$$;

CREATE TRIGGER learner_stopping_advice_stays BEFORE UPDATE OR DELETE ON learner_stoppingadvice
    FOR EACH ROW EXECUTE FUNCTION learner_stopping_advice_stays();

-- Emptying a table asks no trigger of its rows.
CREATE TRIGGER learner_stopping_advice_not_emptied BEFORE TRUNCATE ON learner_stoppingadvice
    FOR EACH STATEMENT EXECUTE FUNCTION learner_stopping_advice_stays();

CREATE TRIGGER learner_release_not_emptied BEFORE TRUNCATE ON learner_modelrelease
    FOR EACH STATEMENT EXECUTE FUNCTION learner_release_stays();

CREATE TRIGGER learner_lineage_not_emptied BEFORE TRUNCATE ON learner_modelrelease_lineage
    FOR EACH STATEMENT EXECUTE FUNCTION learner_lineage_stays();

CREATE TRIGGER learner_evaluation_not_emptied BEFORE TRUNCATE ON learner_evaluation
    FOR EACH STATEMENT EXECUTE FUNCTION learner_evaluation_stays();
