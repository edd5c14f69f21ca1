-- Sums that were written again would no longer be what their noise was paid for.
CREATE FUNCTION learner_sums_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'released sums are written once' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_sums_stay';
END
$$;

CREATE TRIGGER learner_sums_stay BEFORE UPDATE ON learner_releasedsums
    FOR EACH ROW EXECUTE FUNCTION learner_sums_stay();
