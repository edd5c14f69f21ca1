-- A crowd's answers have an account of the unit that is declared for them, and none where they are declared no secret.
-- At the end of the transaction: a project is stored before its first configuration.
CREATE FUNCTION annotation_check_answers_account() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    project annotation_project;
    settings jsonb;
    wanted text;
    held text;
BEGIN
    SELECT * INTO project FROM annotation_project WHERE id = NEW.id;
    IF NOT FOUND OR project.oracle <> 'crowd' THEN
        RETURN NULL;
    END IF;
    settings := annotation_settings(project.configuration_id);
    wanted := CASE WHEN EXISTS (
            SELECT FROM annotation_knownchoice
            WHERE kind = 'randomizer' AND name = settings ->> 'label_randomizer' AND facts -> 'open_answers' = 'true'
        ) THEN NULL
        ELSE coalesce(settings ->> 'answers_unit', 'answer') END;
    SELECT unit INTO held FROM privacy_budgetaccount WHERE id = project.labels_account_id;
    IF wanted IS DISTINCT FROM held THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'answers have an account of their declared unit, and none where they are no secret';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER annotation_project_answers_account
    AFTER INSERT OR UPDATE OF oracle, labels_account_id, configuration_id ON annotation_project
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION annotation_check_answers_account();

-- How many ordinary questions one annotator may answer under a configuration that protects all their answers together;
-- null under any other. The process that serves the label pages may ask for this number alone.
CREATE FUNCTION annotation_answers_cap(configuration uuid) RETURNS integer
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    settings CONSTANT jsonb := annotation_settings(configuration);
BEGIN
    RETURN CASE WHEN settings ->> 'answers_unit' = 'annotator' THEN (settings ->> 'answers_cap')::integer END;
END $$;

REVOKE EXECUTE ON FUNCTION annotation_answers_cap(uuid) FROM PUBLIC;

-- The charge of an annotator is that of so many questions, so nobody answers one more, whoever writes the row. An answer
-- that was taken back or changed counts its question once; hidden checks are declared unprotected and count none.
CREATE FUNCTION annotation_check_answers_cap() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    cap integer;
    project bigint;
BEGIN
    SELECT query.project_id, annotation_answers_cap(owner.configuration_id) INTO project, cap
    FROM annotation_query query JOIN annotation_project owner ON owner.id = query.project_id
    WHERE query.id = NEW.query_id AND query.state <> 'gold' AND owner.oracle = 'crowd';
    IF cap IS NULL THEN
        RETURN NEW;
    END IF;
    -- Two answers of one person at once come one after the other, and the second sees the first.
    PERFORM pg_advisory_xact_lock(hashtextextended('annotation_answers_cap', project # NEW.annotator_id));
    IF cap <= (
        SELECT count(DISTINCT given.query_id)
        FROM annotation_label given JOIN annotation_query query ON query.id = given.query_id
        WHERE given.annotator_id = NEW.annotator_id AND given.query_id <> NEW.query_id
            AND query.project_id = project AND query.state <> 'gold'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'this person has given as many answers as are protected together';
    END IF;
    RETURN NEW;
END $$;

REVOKE EXECUTE ON FUNCTION annotation_check_answers_cap() FROM PUBLIC;

CREATE TRIGGER annotation_label_within_cap BEFORE INSERT ON annotation_label
    FOR EACH ROW EXECUTE FUNCTION annotation_check_answers_cap();
