-- What a release descends from is written with it, and what it was measured at is written once.
CREATE FUNCTION learner_lineage_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    found text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT state INTO found FROM learner_modelrelease WHERE id = NEW.modelrelease_id;
        -- What was paid for a release's thresholds joins its lineage when they are stored.
        IF found = 'candidate' OR EXISTS (
            SELECT FROM learner_sharesreport AS report
            JOIN privacy_ledgerentry AS done ON done.id = report.committed_entry_id
            JOIN privacy_ledgerentry AS added ON added.id = NEW.ledgerentry_id
            WHERE report.release_id = NEW.modelrelease_id AND report.grouping = 'confidence' AND report.state = 'done'
                AND added.kind = 'commit' AND added.output_digest = done.output_digest
        ) THEN
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

-- Emptying a table asks no trigger of its rows.
CREATE TRIGGER learner_release_not_emptied BEFORE TRUNCATE ON learner_modelrelease
    FOR EACH STATEMENT EXECUTE FUNCTION learner_release_stays();

CREATE TRIGGER learner_lineage_not_emptied BEFORE TRUNCATE ON learner_modelrelease_lineage
    FOR EACH STATEMENT EXECUTE FUNCTION learner_lineage_stays();

CREATE TRIGGER learner_evaluation_not_emptied BEFORE TRUNCATE ON learner_evaluation
    FOR EACH STATEMENT EXECUTE FUNCTION learner_evaluation_stays();
