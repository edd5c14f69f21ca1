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

CREATE TRIGGER annotation_project_guarantee_fixed
    BEFORE UPDATE OF privacy_unit, pool_account_id, labels_account_id, data_kind, classes, columns, image_height,
        image_width, feature_dimension, features, selection ON annotation_project
    FOR EACH ROW WHEN (
        (OLD.privacy_unit, OLD.pool_account_id, OLD.labels_account_id, OLD.data_kind, OLD.classes, OLD.columns,
         OLD.image_height, OLD.image_width, OLD.feature_dimension, OLD.features, OLD.selection = 'secret_sample')
        IS DISTINCT FROM
        (NEW.privacy_unit, NEW.pool_account_id, NEW.labels_account_id, NEW.data_kind, NEW.classes, NEW.columns,
         NEW.image_height, NEW.image_width, NEW.feature_dimension, NEW.features, NEW.selection = 'secret_sample')
    )
    EXECUTE FUNCTION annotation_check_guarantee_change();

-- A version of the configuration is what all changes up to it make; whoever changed it, by whatever way.
CREATE FUNCTION annotation_note_project_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed jsonb;
BEGIN
    SELECT jsonb_object_agg(after.key, jsonb_build_array(before.value, after.value)) INTO changed
    FROM jsonb_each(to_jsonb(NEW)) after JOIN jsonb_each(to_jsonb(OLD)) before USING (key)
    WHERE after.value IS DISTINCT FROM before.value AND after.key <> 'labels_used_through';
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
CREATE TRIGGER annotation_action_kept BEFORE UPDATE OR DELETE ON annotation_action
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('the log of actions is never rewritten');
CREATE TRIGGER annotation_action_kept_whole BEFORE TRUNCATE ON annotation_action
    FOR EACH STATEMENT EXECUTE FUNCTION annotation_refuse('the log of actions is never rewritten');

-- As for every function of ours: a temporary table named like one of these tables is not read in its place.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['annotation_check_guarantee_change()', 'annotation_note_project_change()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', name, current_schema());
    END LOOP;
END $$;
