-- Whoever reviews sees records and what others answered: there are none in front of a crowd, where managers alone decide.
CREATE FUNCTION annotation_check_reviewer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    answers text;
BEGIN
    -- A project that becomes one of a crowd at this moment is waited for and then seen.
    SELECT oracle INTO answers FROM annotation_project WHERE id = NEW.project_id FOR KEY SHARE;
    IF answers IS DISTINCT FROM 'trusted' THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'in front of a crowd nobody reviews but managers';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_membership_reviewer BEFORE INSERT OR UPDATE OF project_id, role ON annotation_membership
    FOR EACH ROW WHEN (NEW.role = 'reviewer') EXECUTE FUNCTION annotation_check_reviewer();

CREATE TRIGGER annotation_grouprole_reviewer BEFORE INSERT OR UPDATE OF project_id, role ON annotation_grouprole
    FOR EACH ROW WHEN (NEW.role = 'reviewer') EXECUTE FUNCTION annotation_check_reviewer();

CREATE TRIGGER annotation_invitation_reviewer BEFORE INSERT OR UPDATE OF project_id, role ON annotation_invitation
    FOR EACH ROW WHEN (NEW.role = 'reviewer') EXECUTE FUNCTION annotation_check_reviewer();

CREATE FUNCTION annotation_check_kind_reviewers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Whoever gives somebody the role at this moment is waited for and then seen.
    PERFORM FROM annotation_project WHERE id = OLD.id FOR UPDATE;
    IF EXISTS (SELECT FROM annotation_membership WHERE project_id = OLD.id AND role = 'reviewer')
        OR EXISTS (SELECT FROM annotation_grouprole WHERE project_id = OLD.id AND role = 'reviewer')
        OR EXISTS (
            SELECT FROM annotation_invitation
            WHERE project_id = OLD.id AND role = 'reviewer' AND revoked_at IS NULL AND expires_at > now()
                AND uses < maximum_uses
        )
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'in front of a crowd nobody reviews but managers';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_project_kind_reviewers BEFORE UPDATE OF oracle ON annotation_project
    FOR EACH ROW WHEN (NEW.oracle <> 'trusted' AND OLD.oracle = 'trusted')
    EXECUTE FUNCTION annotation_check_kind_reviewers();
