-- What a guarantee was given for stays as it is once anything was paid under it.
CREATE FUNCTION annotation_check_guarantee_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM privacy_ledgerentry
        WHERE account_id IN (OLD.pool_account_id, OLD.labels_account_id) AND kind = 'reserve'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'what a guarantee rests on never changes after the first charge';
    END IF;
    RETURN NEW;
END $$;

-- The history says which settings changed, wherever they are stored. What is left out is left open.
CREATE FUNCTION annotation_note_project_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- Guidelines may quote a record, and this is never erased: it says that they changed and nothing about their text.
    before CONSTANT jsonb := to_jsonb(OLD) - '{configuration_id,guidelines}'::text[]
        || annotation_settings(OLD.configuration_id);
    after CONSTANT jsonb := to_jsonb(NEW) - '{configuration_id,guidelines}'::text[]
        || annotation_settings(NEW.configuration_id)
        || CASE WHEN NEW.guidelines IS DISTINCT FROM OLD.guidelines THEN '{"guidelines": "changed"}' ELSE '{}' END::jsonb;
    changed jsonb;
BEGIN
    SELECT jsonb_object_agg(key, jsonb_build_array(before -> key, after -> key)) INTO changed
    FROM (SELECT jsonb_object_keys(before || after) AS key) settings
    WHERE coalesce(before -> key, 'null') <> coalesce(after -> key, 'null')
        AND key NOT IN ('labels_used_through', 'labels_used_at');
    IF changed IS NOT NULL THEN
        INSERT INTO annotation_projectchange (project_id, actor, fields, created_at)
        VALUES (NEW.id, left(coalesce(current_setting('dpal.actor', true), ''), 150), changed, now());
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_project_noted AFTER UPDATE ON annotation_project
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION annotation_note_project_change();

CREATE TRIGGER annotation_change_kept BEFORE UPDATE OR DELETE ON annotation_projectchange
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('the history of a project is never rewritten');

CREATE TRIGGER annotation_change_kept_whole BEFORE TRUNCATE ON annotation_projectchange
    FOR EACH STATEMENT EXECUTE FUNCTION annotation_refuse('the history of a project is never rewritten');

CREATE TRIGGER annotation_action_kept_whole BEFORE TRUNCATE ON annotation_action
    FOR EACH STATEMENT EXECUTE FUNCTION annotation_refuse('the log of actions is never rewritten');
