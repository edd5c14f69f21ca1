-- A membership stands exactly where a person has the role by themselves or through a group. Whoever asks for a role looks
-- at memberships alone; what follows keeps them from saying anything else than their sources, whatever wrote them.

CREATE FUNCTION annotation_role_by_group(project bigint, person int, wanted text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM annotation_grouprole given JOIN auth_user_groups place USING (group_id)
        WHERE given.project_id = $1 AND given.role = $3 AND place.user_id = $2
    )
$$;

CREATE FUNCTION annotation_check_membership() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- As it is now, at the end of the transaction, not as it was when the row changed.
    IF TG_OP <> 'DELETE' AND EXISTS (
        SELECT FROM annotation_membership member
        WHERE member.id = NEW.id AND NOT member.is_direct
          AND NOT annotation_role_by_group(member.project_id, member.user_id, member.role)
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a membership that nobody gave';
    END IF;
    IF TG_OP <> 'INSERT' AND annotation_role_by_group(OLD.project_id, OLD.user_id, OLD.role) AND NOT EXISTS (
        SELECT FROM annotation_membership member
        WHERE member.project_id = OLD.project_id AND member.user_id = OLD.user_id AND member.role = OLD.role
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a role that a group gives has its membership';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER annotation_membership_has_source
    AFTER INSERT OR DELETE OR UPDATE OF project_id, user_id, role, is_direct ON annotation_membership
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION annotation_check_membership();

CREATE FUNCTION annotation_check_group() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' AND EXISTS (
        SELECT FROM annotation_grouprole given JOIN auth_user_groups place USING (group_id)
        WHERE given.group_id = NEW.group_id
          AND (CASE TG_TABLE_NAME WHEN 'auth_user_groups' THEN place.id ELSE given.id END) = NEW.id
          AND NOT EXISTS (
              SELECT FROM annotation_membership member
              WHERE member.project_id = given.project_id AND member.user_id = place.user_id
                AND member.role = given.role
          )
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a role that a group gives has its membership';
    END IF;
    IF TG_OP = 'DELETE' AND EXISTS (
        SELECT FROM annotation_membership member
        WHERE NOT member.is_direct
          AND (CASE TG_TABLE_NAME
               WHEN 'auth_user_groups' THEN member.user_id = (to_jsonb(OLD) ->> 'user_id')::int
               ELSE member.project_id = (to_jsonb(OLD) ->> 'project_id')::bigint END)
          AND NOT annotation_role_by_group(member.project_id, member.user_id, member.role)
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a membership that nobody gave';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER annotation_groupmember_has_roles AFTER INSERT OR DELETE ON auth_user_groups
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION annotation_check_group();

CREATE CONSTRAINT TRIGGER annotation_grouprole_has_members AFTER INSERT OR DELETE ON annotation_grouprole
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION annotation_check_group();

-- One change of a group after another: who adds a person sees the roles another session is giving, and the reverse.
CREATE FUNCTION annotation_lock_group() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM FROM auth_group WHERE id = OLD.group_id FOR NO KEY UPDATE;
        RETURN OLD;
    END IF;
    PERFORM FROM auth_group WHERE id = NEW.group_id FOR NO KEY UPDATE;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_groupmember_in_turn BEFORE INSERT OR DELETE ON auth_user_groups
    FOR EACH ROW EXECUTE FUNCTION annotation_lock_group();

CREATE TRIGGER annotation_grouprole_in_turn BEFORE INSERT OR DELETE ON annotation_grouprole
    FOR EACH ROW EXECUTE FUNCTION annotation_lock_group();

CREATE TRIGGER annotation_groupmember_kept BEFORE UPDATE ON auth_user_groups
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('a place in a group is taken and left, never changed');

CREATE TRIGGER annotation_grouprole_kept BEFORE UPDATE ON annotation_grouprole
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('the role of a group is given and taken, never changed');

-- Whoever came by a crowd platform is a stranger; a group may lead into projects that show private records.
CREATE FUNCTION annotation_refuse_stranger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM annotation_crowdparticipant WHERE user_id = NEW.user_id) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a participant of a crowd platform is in no group';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_groupmember_no_stranger BEFORE INSERT ON auth_user_groups
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse_stranger();
