-- Where a project asks for a second manager, nobody becomes one on the word of one: whoever may appoint alone has a second
-- account approve what the first one asks. Each approval is for one person, once.
CREATE FUNCTION annotation_check_manager() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Whoever demands a second manager at this moment is waited for and then seen.
    PERFORM FROM annotation_project WHERE id = NEW.project_id FOR SHARE;
    IF NOT EXISTS (SELECT FROM annotation_project WHERE id = NEW.project_id AND second_manager)
        -- Giving a role that is there already gives nothing.
        OR EXISTS (
            SELECT FROM annotation_membership
            WHERE project_id = NEW.project_id AND user_id = NEW.user_id AND role = 'manager'
        )
    THEN
        RETURN NEW;
    END IF;
    UPDATE annotation_limitrequest SET used_at = now()
    WHERE id = (
        SELECT id FROM annotation_limitrequest
        WHERE project_id = NEW.project_id AND kind = 'manager' AND appointee_id = NEW.user_id
            AND state = 'approved' AND used_at IS NULL AND expires_at >= now()
        ORDER BY id LIMIT 1 FOR UPDATE
    ) AND used_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a further manager of this project needs the approval of a second manager';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_manager_needs_second BEFORE INSERT ON annotation_membership
    FOR EACH ROW WHEN (NEW.role = 'manager') EXECUTE FUNCTION annotation_check_manager();

CREATE TRIGGER annotation_manager_changed_needs_second BEFORE UPDATE OF project_id, user_id, role ON annotation_membership
    FOR EACH ROW WHEN (
        NEW.role = 'manager'
        AND (OLD.project_id, OLD.user_id, OLD.role) IS DISTINCT FROM (NEW.project_id, NEW.user_id, NEW.role)
    )
    EXECUTE FUNCTION annotation_check_manager();

-- A group's people come and go by an administrator's word, so that where two are asked no group makes managers.
CREATE FUNCTION annotation_check_group_of_managers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'annotation_grouprole' THEN
        PERFORM FROM annotation_project WHERE id = (to_jsonb(NEW) ->> 'project_id')::bigint FOR SHARE;
        IF NOT EXISTS (
            SELECT FROM annotation_project WHERE id = (to_jsonb(NEW) ->> 'project_id')::bigint AND second_manager
        ) THEN
            RETURN NEW;
        END IF;
    ELSIF NOT EXISTS (SELECT FROM annotation_grouprole WHERE project_id = NEW.id AND role = 'manager') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
        MESSAGE = 'no group makes managers where a second manager is asked';
END $$;

CREATE TRIGGER annotation_grouprole_no_managers BEFORE INSERT ON annotation_grouprole
    FOR EACH ROW WHEN (NEW.role = 'manager') EXECUTE FUNCTION annotation_check_group_of_managers();

CREATE TRIGGER annotation_project_second_without_groups BEFORE UPDATE OF second_manager ON annotation_project
    FOR EACH ROW WHEN (NEW.second_manager AND NOT OLD.second_manager)
    EXECUTE FUNCTION annotation_check_group_of_managers();
