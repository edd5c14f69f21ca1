-- A group that labels for a crowd project: whoever joins it later would see the records, too.
CREATE FUNCTION annotation_check_kind_groups() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Whoever gives a group its role at this moment is waited for and then seen.
    PERFORM FROM annotation_project WHERE id = OLD.id FOR UPDATE;
    IF EXISTS (SELECT FROM annotation_grouprole WHERE project_id = OLD.id AND role = 'annotator') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'annotators let in as strangers would see records';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_project_kind_groups BEFORE UPDATE OF oracle ON annotation_project
    FOR EACH ROW WHEN (OLD.oracle = 'crowd' AND NEW.oracle <> 'crowd')
    EXECUTE FUNCTION annotation_check_kind_groups();
