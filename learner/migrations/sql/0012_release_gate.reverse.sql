CREATE OR REPLACE FUNCTION learner_release_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.state = 'released' AND NEW.state = 'retired'
        AND to_jsonb(NEW) - 'state' - 'retired_reason' = to_jsonb(OLD) - 'state' - 'retired_reason' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a release can only be retired' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_release_stays';
END
$$;
