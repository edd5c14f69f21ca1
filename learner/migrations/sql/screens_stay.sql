-- What a screen was paid for holds at the rates and the number of looks it was opened with.
CREATE FUNCTION learner_screen_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    charged CONSTANT text[] := ARRAY(
        SELECT declared.key FROM annotation_knownchoice known, jsonb_each(known.parameters) declared
        WHERE known.kind = 'strategy' AND declared.value -> 'charged' = 'true'
    );
BEGIN
    IF annotation_settings_differ(OLD.configuration_id, NEW.configuration_id, VARIADIC ARRAY['selection'] || charged)
    AND EXISTS (
        SELECT FROM learner_screenlooks looks JOIN annotation_dataset dataset ON dataset.id = looks.dataset_id
        WHERE dataset.project_id = NEW.id
    ) THEN
        RAISE EXCEPTION 'a screen has looked at this pool, so its rates stay' USING ERRCODE = 'check_violation',
            CONSTRAINT = 'learner_screen_stays';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER learner_screen_stays
    BEFORE UPDATE OF configuration_id ON annotation_project
    FOR EACH ROW WHEN (OLD.configuration_id IS DISTINCT FROM NEW.configuration_id)
    EXECUTE FUNCTION learner_screen_stays();

-- A look that was taken is never forgotten: it has been paid for once.
CREATE FUNCTION learner_looks_grow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- Joined to nothing, the bytes are unpacked once and not for every place.
    looked bytea := OLD.looks || ''::bytea;
    looks bytea;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        looks := NEW.looks || ''::bytea;
        IF (NEW.dataset_id, NEW.first_row) = (OLD.dataset_id, OLD.first_row) AND length(looks) = length(looked) AND NOT EXISTS (
            SELECT FROM generate_series(0, length(looked) - 1) AS place
            WHERE get_byte(looks, place) < get_byte(looked, place)
        ) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'looks at a record are counted up only' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_looks_grow';
END
$$;

CREATE TRIGGER learner_looks_grow BEFORE UPDATE ON learner_screenlooks
    FOR EACH ROW EXECUTE FUNCTION learner_looks_grow();
