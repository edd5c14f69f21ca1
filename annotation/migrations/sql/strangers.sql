-- Whoever came by a crowd platform has no password and no second factor, and is in here as nothing but an annotator of
-- the crowd project their link leads to: elsewhere they would see records.
CREATE FUNCTION annotation_check_stranger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM annotation_crowdparticipant WHERE user_id = NEW.user_id) THEN
        RETURN NEW;
    END IF;
    -- A project that becomes one of experts at this moment is waited for and then seen.
    PERFORM FROM annotation_project WHERE id = NEW.project_id FOR KEY SHARE;
    IF NEW.role <> 'annotator' OR NOT EXISTS (
        SELECT FROM annotation_crowdparticipant participant
        JOIN annotation_crowdlink link ON link.id = participant.link_id
        JOIN annotation_project project ON project.id = link.project_id
        WHERE participant.user_id = NEW.user_id AND project.id = NEW.project_id AND project.oracle = 'crowd'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a participant of a crowd platform takes no other role';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_membership_no_stranger BEFORE INSERT OR UPDATE OF project_id, user_id, role
    ON annotation_membership FOR EACH ROW EXECUTE FUNCTION annotation_check_stranger();

-- The other way round: nobody who is somebody here becomes a participant.
CREATE FUNCTION annotation_check_participant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM auth_user WHERE id = NEW.user_id AND (is_staff OR is_superuser))
        OR EXISTS (SELECT FROM auth_user_groups WHERE user_id = NEW.user_id)
        OR EXISTS (
            SELECT FROM annotation_membership member
            WHERE member.user_id = NEW.user_id AND NOT (
                member.role = 'annotator'
                AND member.project_id = (SELECT project_id FROM annotation_crowdlink WHERE id = NEW.link_id)
            )
        )
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a participant of a crowd platform takes no other role';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_participant_nobody_else BEFORE INSERT OR UPDATE OF link_id, user_id
    ON annotation_crowdparticipant FOR EACH ROW EXECUTE FUNCTION annotation_check_participant();
