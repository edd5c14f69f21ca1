DROP TRIGGER learner_release_project_open ON learner_modelrelease;
DROP FUNCTION learner_check_release_project();
DROP TRIGGER learner_training_project_open ON learner_trainingrun;
DROP TRIGGER learner_round_project_open ON learner_round;
DROP TRIGGER learner_looks_kept ON learner_screenlooks;
DROP TRIGGER learner_looks_grow ON learner_screenlooks;
CREATE TRIGGER learner_looks_grow BEFORE UPDATE OR DELETE ON learner_screenlooks
    FOR EACH ROW EXECUTE FUNCTION learner_looks_grow();
DROP TRIGGER learner_coins_kept ON learner_secretdraw;
DROP TRIGGER learner_coins_stay ON learner_secretdraw;
CREATE TRIGGER learner_coins_stay BEFORE UPDATE OR DELETE ON learner_secretdraw
    FOR EACH ROW EXECUTE FUNCTION learner_coins_stay();
DROP FUNCTION learner_goes_with_project();
DROP FUNCTION learner_is_of_deleted(bigint);
CREATE OR REPLACE FUNCTION learner_release_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    checked CONSTANT text[] := ARRAY['state', 'checks', 'held_back', 'released_at', 'retired_reason'];
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.state = 'candidate' AND to_jsonb(NEW) - checked = to_jsonb(OLD) - checked THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.state = 'released' AND NEW.state = 'retired'
        AND to_jsonb(NEW) - 'state' - 'retired_reason' = to_jsonb(OLD) - 'state' - 'retired_reason' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a release can only be retired' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_release_stays';
END
$$;
