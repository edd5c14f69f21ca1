-- A measure on private records would be a release that nothing paid for.
CREATE FUNCTION learner_evaluation_public() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM annotation_dataset WHERE id = NEW.dataset_id AND role = 'public_test') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a release is measured on public test sets alone' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_evaluation_public';
END
$$;

CREATE TRIGGER learner_evaluation_public BEFORE INSERT ON learner_evaluation
    FOR EACH ROW EXECUTE FUNCTION learner_evaluation_public();
