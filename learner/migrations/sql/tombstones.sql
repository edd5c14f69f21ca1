-- Coins go with their project only: a second coin for the same record would make every charge too small.
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

CREATE TRIGGER learner_coins_kept BEFORE DELETE ON learner_secretdraw
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
