-- A candidate may be checked, released, or retired; a release may be retired; nothing else about either ever changes.
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
