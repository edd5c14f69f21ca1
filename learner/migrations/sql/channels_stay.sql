-- Where a channel pointed, when and why, stays; it points at released versions of its own project alone.
CREATE FUNCTION learner_channel_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF EXISTS (
            SELECT FROM learner_modelrelease
            WHERE id = NEW.release_id AND project_id = NEW.project_id AND state = 'released'
        ) THEN
            RETURN NEW;
        END IF;
        RAISE EXCEPTION 'a channel is a released version of its project' USING ERRCODE = 'check_violation',
            CONSTRAINT = 'learner_channel_released';
    END IF;
    RAISE EXCEPTION 'where a channel pointed stays' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_channel_stays';
END
$$;

CREATE TRIGGER learner_channel_stays BEFORE INSERT OR UPDATE OR DELETE ON learner_channelmove
    FOR EACH ROW EXECUTE FUNCTION learner_channel_stays();
