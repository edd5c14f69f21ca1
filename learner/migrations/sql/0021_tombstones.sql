-- Coins and looks go with their project only: a second coin for the same record would make every charge too small.
CREATE FUNCTION learner_is_of_deleted(upload bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM annotation_dataset dataset JOIN annotation_project project ON project.id = dataset.project_id
        WHERE dataset.id = $1 AND project.state = 'deleted'
    )
$$;
CREATE FUNCTION learner_goes_with_project() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF learner_is_of_deleted(OLD.dataset_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'this goes with its project only' USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
END $$;
DROP TRIGGER learner_coins_stay ON learner_secretdraw;
CREATE TRIGGER learner_coins_stay BEFORE UPDATE ON learner_secretdraw
    FOR EACH ROW EXECUTE FUNCTION learner_coins_stay();
CREATE TRIGGER learner_coins_kept BEFORE DELETE ON learner_secretdraw
    FOR EACH ROW EXECUTE FUNCTION learner_goes_with_project();
DROP TRIGGER learner_looks_grow ON learner_screenlooks;
CREATE TRIGGER learner_looks_grow BEFORE UPDATE ON learner_screenlooks
    FOR EACH ROW EXECUTE FUNCTION learner_looks_grow();
CREATE TRIGGER learner_looks_kept BEFORE DELETE ON learner_screenlooks
    FOR EACH ROW EXECUTE FUNCTION learner_goes_with_project();

-- Nothing new is chosen, trained or released for a project that was put away or deleted.
CREATE TRIGGER learner_round_project_open BEFORE INSERT ON learner_round
    FOR EACH ROW EXECUTE FUNCTION annotation_check_project_open();
CREATE TRIGGER learner_training_project_open BEFORE INSERT ON learner_trainingrun
    FOR EACH ROW EXECUTE FUNCTION annotation_check_project_open();
CREATE FUNCTION learner_check_release_project() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM annotation_project WHERE id = NEW.project_id AND state = 'deleted') THEN
        RAISE EXCEPTION 'a deleted project releases nothing' USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER learner_release_project_open BEFORE INSERT ON learner_modelrelease
    FOR EACH ROW EXECUTE FUNCTION learner_check_release_project();

-- A release of a deleted project may be buried: its numbers go, and what was promised about it stays.
CREATE OR REPLACE FUNCTION learner_release_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    checked CONSTANT text[] := ARRAY['state', 'checks', 'held_back', 'released_at', 'retired_reason'];
    buried CONSTANT text[] := ARRAY['state', 'retired_reason', 'weights', 'features', 'configuration'];
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.state = 'candidate' AND to_jsonb(NEW) - checked = to_jsonb(OLD) - checked THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.state = 'released' AND NEW.state = 'retired'
        AND to_jsonb(NEW) - 'state' - 'retired_reason' = to_jsonb(OLD) - 'state' - 'retired_reason' THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.state = 'retired' AND to_jsonb(NEW) - buried = to_jsonb(OLD) - buried
        AND (NEW.weights, NEW.features, NEW.configuration) IS NOT DISTINCT FROM ('{}'::jsonb, '{}'::jsonb, '{}'::jsonb)
        AND EXISTS (SELECT FROM annotation_project WHERE id = OLD.project_id AND state = 'deleted')
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a release can only be retired' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_release_stays';
END
$$;

-- A session may put a temporary table of the same name before ours.
DO $$
DECLARE
    routine text;
BEGIN
    FOREACH routine IN ARRAY ARRAY[
        'learner_is_of_deleted(bigint)', 'learner_goes_with_project()', 'learner_check_release_project()',
        'learner_release_stays()'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', routine, current_schema());
    END LOOP;
END
$$;
