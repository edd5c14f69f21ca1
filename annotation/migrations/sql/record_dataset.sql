-- A record belongs to a dataset that is there. The foreign key asked for each row by itself, which was half the time
-- of an import; this asks once a statement for each dataset named in it, under the same lock.

CREATE FUNCTION annotation_check_metadata(holder bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    faced text;
BEGIN
    -- Whoever puts the project before a crowd waits for us, and then finds the rows.
    SELECT oracle INTO faced FROM annotation_project
    WHERE id = (SELECT project_id FROM annotation_dataset WHERE id = holder) FOR KEY SHARE;
    IF faced = 'crowd' THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_record_metadata',
            MESSAGE = 'behind a gate no record keeps columns of its owner';
    END IF;
END $$;

CREATE FUNCTION annotation_check_added_records() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    named bigint;
BEGIN
    FOR named IN SELECT DISTINCT dataset_id FROM added LOOP
        -- Whoever deletes the dataset waits for us, and then finds the rows.
        PERFORM FROM annotation_dataset WHERE id = named FOR KEY SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation', CONSTRAINT = TG_NAME,
                MESSAGE = 'a record belongs to a dataset that is there';
        END IF;
        IF EXISTS (SELECT FROM annotation_dataset WHERE id = named AND in_columns) THEN
            RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_rows_in_one_place',
                MESSAGE = 'a pool that lies in storage as columns has no rows here';
        END IF;
        -- Behind a gate no question knows its record, so nobody could be shown them: they would only lie there.
        IF EXISTS (SELECT FROM added WHERE dataset_id = named AND metadata IS NOT NULL) THEN
            PERFORM annotation_check_metadata(named);
        END IF;
        -- While an upload is read its rows count for nothing; here are those that come to one that takes part already.
        IF EXISTS (SELECT FROM annotation_dataset WHERE id = named AND role = 'pool' AND state = 'ready')
            AND EXISTS (SELECT FROM added WHERE dataset_id = named AND contributor IS NOT NULL)
        THEN
            PERFORM annotation_check_declared((SELECT project_id FROM annotation_dataset WHERE id = named));
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_record_has_dataset AFTER INSERT ON annotation_record
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT
    EXECUTE FUNCTION annotation_check_added_records();

CREATE FUNCTION annotation_check_moved_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM annotation_dataset WHERE id = NEW.dataset_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a record belongs to a dataset that is there';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_record_keeps_dataset AFTER UPDATE OF dataset_id ON annotation_record
    FOR EACH ROW WHEN (OLD.dataset_id IS DISTINCT FROM NEW.dataset_id)
    EXECUTE FUNCTION annotation_check_moved_record();

CREATE FUNCTION annotation_check_changed_metadata() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM annotation_check_metadata(NEW.dataset_id);
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_record_metadata AFTER UPDATE OF metadata, dataset_id ON annotation_record
    FOR EACH ROW WHEN (NEW.metadata IS NOT NULL)
    EXECUTE FUNCTION annotation_check_changed_metadata();

CREATE FUNCTION annotation_check_left_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- An older view of the rows would miss those that came while we waited for the dataset's lock.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = 'datasets are deleted under read committed alone';
    END IF;
    IF EXISTS (SELECT FROM annotation_record WHERE dataset_id = OLD.id)
        AND NOT EXISTS (SELECT FROM annotation_dataset WHERE id = OLD.id) THEN
        RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a dataset goes after its records';
    END IF;
    RETURN NULL;
END $$;

-- At the end, like the foreign key's: records and dataset may go in any order.
CREATE CONSTRAINT TRIGGER annotation_dataset_without_records AFTER DELETE OR UPDATE OF id ON annotation_dataset
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    EXECUTE FUNCTION annotation_check_left_records();

CREATE TRIGGER annotation_dataset_emptied BEFORE TRUNCATE ON annotation_dataset
    FOR EACH STATEMENT EXECUTE FUNCTION annotation_refuse('datasets are deleted one by one, after their records');
