-- Participants of a crowd link are strangers, and a trusted project shows records.
CREATE FUNCTION annotation_check_crowd_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM annotation_project WHERE id = NEW.project_id AND oracle = 'crowd') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'only a crowd project is opened to a crowd';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_crowd_link_fits_oracle BEFORE INSERT OR UPDATE OF project_id ON annotation_crowdlink
    FOR EACH ROW EXECUTE FUNCTION annotation_check_crowd_link();
