-- Lines of the log go only when they are older than their project keeps them, and never young ones.
CREATE FUNCTION annotation_check_action_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (
        SELECT FROM annotation_retention
        WHERE project_id = OLD.project_id AND OLD.created_at < now() - make_interval(days => actions_days)
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
        MESSAGE = 'the log of actions is never rewritten';
END $$;

CREATE TRIGGER annotation_action_kept BEFORE UPDATE OR DELETE ON annotation_action
    FOR EACH ROW EXECUTE FUNCTION annotation_check_action_gone();
